"""The tables of the control plane, one file each."""

from app.models.base import Base, utcnow
from app.models.blobs import Blob
from app.models.calibrations import CalibrationRow
from app.models.captures import CaptureRow
from app.models.hosts import DeviceRow, HostRow
from app.models.idempotency import IdempotencyKey
from app.models.jobs import Job
from app.models.kernels import KernelRow
from app.models.profiles import Profile, RunDocument
from app.models.projects import Project
from app.models.runs import Run
from app.models.steps import StepRow
from app.models.telemetry import TelemetryRow
from app.models.tokens import Token

__all__ = [
    "Base",
    "Blob",
    "CalibrationRow",
    "CaptureRow",
    "DeviceRow",
    "HostRow",
    "IdempotencyKey",
    "Job",
    "KernelRow",
    "Profile",
    "Project",
    "Run",
    "RunDocument",
    "StepRow",
    "TelemetryRow",
    "Token",
    "utcnow",
]
