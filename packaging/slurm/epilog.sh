#!/bin/bash
# slurm.conf: Epilog=/etc/slurm/rooflight/epilog.sh
# Stops the agent with the last job of the node; what it could not deliver waits on disk for the next start.
# Leave it out where telemetry of idle nodes is wanted too.  It never fails: that would drain the node.
jobs=${ROOFLIGHT_JOBS:-/run/rooflight-jobs}
rm -f "$jobs/${SLURM_JOB_ID:-unknown}"
if [ -d "$jobs" ] && [ -z "$(ls -A "$jobs")" ]; then
    timeout 10 systemctl stop --no-block rooflight-agent.service
fi
exit 0
