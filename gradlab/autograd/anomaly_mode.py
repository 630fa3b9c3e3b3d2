"""Names of `torch.autograd.anomaly_mode`. The mode itself is implemented in `gradlab.diagnose.anomaly`."""

from gradlab.diagnose.anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
    set_detect_anomaly,
)

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled", "set_detect_anomaly"]
