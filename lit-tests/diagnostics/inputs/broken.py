"""broken.py HOW ARCHIVE OUT: writes a copy of a real archive with something wrong with it."""

import pathlib
import sys
import zipfile


def records(archive):
    with zipfile.ZipFile(archive) as source:
        return {name: source.read(name) for name in source.namelist()}


def write(out, contents):
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for name, data in contents.items():
            target.writestr(name, data)


def edit(archive, out, change):
    contents = records(archive)
    change(contents, next(iter(contents)).split("/")[0])
    write(out, contents)


def in_source(old, new):
    def change(contents, root):
        name = f"{root}/code/__torch__.py"
        assert old.encode() in contents[name], contents[name]
        contents[name] = contents[name].replace(old.encode(), new.encode(), 1)

    return change


def without(record):
    return lambda contents, root: contents.pop(f"{root}/{record}")


def with_record(record, data):
    return lambda contents, root: contents.update({f"{root}/{record}": data})


# PROTO 2, GLOBAL os.system, a string, TUPLE1, REDUCE: what the restricted unpickler must never do.
HOSTILE = b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00echotR."

EDITS = {
    "no-data": without("data.pkl"),
    "no-tensor": without("data/0"),
    "short-tensor": with_record("data/0", b"\0"),
    "no-code": without("code/__torch__.py"),
    "bad-pickle": with_record("data.pkl", b"\x80\x02]q\x00(K\x01"),
    "hostile-pickle": with_record("data.pkl", HOSTILE),
    "bad-syntax": in_source("return", "return return"),
    "unknown-operator": in_source("torch.sub(", "torch.frobnicate("),
    "bad-type": in_source("torch.sub(", 'torch.sub("three", '),
    "unknown-name": in_source("torch.sub(x", "torch.sub(nowhere"),
}


def main():
    how, archive, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    if how == "truncated":
        out.write_bytes(archive.read_bytes()[:-100])
    elif how == "cut-in-half":
        data = archive.read_bytes()
        out.write_bytes(data[: len(data) // 2])
    elif how == "text":
        out.write_text("This is not an archive.\n")
    elif how == "empty":
        out.write_bytes(b"")
    else:
        edit(archive, out, EDITS[how])


main()
