"""What the tests share."""

import os

import pytest


@pytest.fixture
def gpu():
    """Skips a test where there is no GPU; `VOLTA_ADAPTER=llvmpipe` makes a software adapter count as one."""
    from micrograd_rs import Device

    if not Device.is_gpu_available():
        if os.environ.get("VOLTA_ADAPTER"):
            pytest.fail(f"VOLTA_ADAPTER names {os.environ['VOLTA_ADAPTER']!r}, and it is not there")
        pytest.skip("no GPU here; VOLTA_ADAPTER=llvmpipe takes the software adapter")
    return Device.gpu()
