"""status.py STATUS COMMAND...: runs a command, passes when it ends with this status, and prints what it wrote to both outputs.

`not` accepts any status but 0, a panic's too; the tools promise 1 for bad input and 2 for bad usage.
"""

import subprocess
import sys

done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
sys.stdout.buffer.write(done.stdout)
sys.stdout.flush()
if done.returncode != int(sys.argv[1]):
    sys.exit(f"status {done.returncode} instead of {sys.argv[1]}")
