"""Folders and fixtures that several files of tests use."""

import os
from pathlib import Path

import pytest

import frazil

REPOSITORY = Path(__file__).resolve().parents[3]
FIXTURES = REPOSITORY / "tests" / "fixtures"


def corpus():
    """The folder of the large corpus, if there is one."""
    folder = os.environ.get("FRAZIL_CORPUS", "none")
    return None if folder == "none" else Path(folder)


@pytest.fixture(scope="session")
def fixtures():
    return FIXTURES


@pytest.fixture
def cnn():
    """The small convolutional network of `make demo`."""
    return frazil.load(FIXTURES / "models" / "residual_cnn" / "model.pt")
