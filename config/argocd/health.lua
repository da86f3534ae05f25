-- SPDX-License-Identifier: Apache-2.0
-- What Argo CD makes of an AgentPool, a ProfilingBackend or a ProfilingTarget. Conditions are judged as kstatus does
-- (Flux, kpt, kubectl wait); only a paused target, which kstatus has no word for, is Suspended.
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is_true(type)
  return conditions[type] ~= nil and conditions[type].status == "True"
end

local ready = conditions.Ready
if ready == nil then
  return {status = "Progressing", message = "the operator has not looked at it yet"}
end
if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "the operator has not looked at the changed spec yet"}
end
if is_true("Stalled") then
  return {status = "Degraded", message = conditions.Stalled.message}
end
if is_true("Ready") and not is_true("Reconciling") then
  return {status = "Healthy", message = ready.message}
end
-- Nobody uses the backend yet: that is no progress to wait for.
if ready.status == "Unknown" and ready.reason == "NotUsed" then
  return {status = "Healthy", message = ready.message}
end
if ready.reason == "Paused" then
  return {status = "Suspended", message = ready.message}
end
return {status = "Progressing", message = ready.message}
