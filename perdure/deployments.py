"""Versions of workers: which deployment and build a worker is of, and how sessions change over.

Versioned workers let an operator decide which build serves, and shift sessions to a new one by and
by. `auto-upgrade`, the default, gives a session's next step to the build that is current then.
With `pinned` a session stays with its build until its workflow continues as new, which it does
between two steps as soon as the server says that another build is current; until then that build's
workers have to run.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Final

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from perdure.errors import ServerError

NAME_VARIABLE = "TEMPORAL_DEPLOYMENT_NAME"
BUILD_VARIABLE = "TEMPORAL_WORKER_BUILD_ID"
"""The names that Temporal's own controller for Kubernetes uses."""

VERSIONING_VARIABLE = "PERDURE_VERSIONING"

_BEHAVIORS: Final = {
    "auto-upgrade": VersioningBehavior.AUTO_UPGRADE,
    "pinned": VersioningBehavior.PINNED,
}


def given_deployment(
    name: str | None = None, build_id: str | None = None, versioning: str | None = None
) -> WorkerDeploymentConfig | None:
    """The worker's place among versions, as it was given or as the environment says; None when
    neither names one. Raises ServerError when a part is missing, or none.
    """
    is_asked_for = bool(name or build_id or versioning)
    name = name or os.environ.get(NAME_VARIABLE, "")
    build_id = build_id or os.environ.get(BUILD_VARIABLE, "")
    versioning = versioning or os.environ.get(VERSIONING_VARIABLE, "") or "auto-upgrade"
    if versioning not in _BEHAVIORS:
        raise ServerError(
            f"{versioning!r} is no way to change over to a new build; take auto-upgrade or pinned"
        )
    if not (is_asked_for or name or build_id):
        return None  # PERDURE_VERSIONING may be set for workers that are not versioned, too
    if not name or not build_id:
        raise ServerError(
            "a versioned worker has both a deployment and a build ID; give --deployment and "
            f"--build-id, or set {NAME_VARIABLE} and {BUILD_VARIABLE}"
        )
    if "." in name:
        raise ServerError(f"the deployment name {name!r} holds a '.', which ends it; leave it out")
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(name, build_id),
        use_worker_versioning=True,
        default_versioning_behavior=_BEHAVIORS[versioning],
    )


def with_behavior(deployment: WorkerDeploymentConfig) -> WorkerDeploymentConfig:
    """The deployment with a behaviour for workflows that have none of their own, as sessions do."""
    if deployment.default_versioning_behavior != VersioningBehavior.UNSPECIFIED:
        return deployment
    return dataclasses.replace(
        deployment, default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE
    )
