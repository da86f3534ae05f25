// SPDX-License-Identifier: Apache-2.0
// The reasons: why a profile is not collected or not delivered. The one list: agents send them, the
// operator puts them in status, metrics use them as label values. A reason is CamelCase, never
// renamed; its text says what to do.
#pragma once

#include <array>
#include <string_view>

namespace flamefleet {

struct Reason {
  std::string_view name;
  std::string_view meaning;  // one sentence: what it means and what to do
};

namespace reasons {

// X(constant, meaning), a line each however long
// clang-format off
#define FF_REASONS(X)                                                                                              \
  /* decided by the operator from annotations, targets and pods */                                                 \
  X(InvalidAnnotation, "An annotation of the pod has a value that is not allowed; the message names key and value.") \
  X(UnknownAnnotation, "An annotation of our families has a key nobody reads; check its spelling.")                \
  X(ConflictingPorts, "Two sources name different ports for one profile type; keep one.")                          \
  X(ConflictingTargets, "Two ProfilingTargets want one profile in different ways; the older one is served.")       \
  X(ConflictingAnnotations, "An annotation says otherwise than what wins over it; the message says what is used.")  \
  X(AnnotationsNotEnabled, "Annotations ask for profiles, but the AgentPool of the node does not let them opt in.") \
  X(PortRequired, "This profile type is pulled over HTTP and no port is set; add a port.")                         \
  X(PortNotFound, "No container of the pod declares a port of this name; use a declared name or a number.")        \
  X(ModeNotSupported, "This profile type cannot be collected in this mode; only cpu can use EBPF.")                \
  X(ContainerNotFound, "The pod has no container of this name.")                                                   \
  X(OptedOut, "The pod says pyroscope.io/scrape: \"false\", which wins over everything.")                          \
  X(Paused, "The ProfilingTarget is paused.")                                                                      \
  X(NoBackend, "No ProfilingBackend of this name exists and none is the default; create one.")                     \
  X(SecretNotFound, "A Secret or a key of it that the ProfilingBackend names does not exist; the message has both names.") \
  X(InvalidSecret, "A Secret of the ProfilingBackend cannot be used; the message says which and why.")    \
  X(SecretNotRead, "The operator has not read a Secret of the ProfilingBackend; its log says why if it stays so.") \
  X(NoAgentPool, "No AgentPool covers the node of this pod.")                                                      \
  X(AgentNotConnected, "The agent of the node is not connected to the operator; look at its pod.")                 \
  X(NotRequested, "Nobody asks for a profile of the pod: no ProfilingTarget selects it, no annotation opts it in.") \
  X(PodNotRunning, "The pod does not run yet.")                                                                    \
  /* decided by the agent */                                                                                       \
  X(WaitingForSamples, "Collection has begun; the first window is not delivered yet.")                             \
  X(ConnectionRefused, "Nothing listens on the port; check that the program serves pprof there.")                  \
  X(ConnectionFailed, "The endpoint could not be reached; check network policies and the port.")                   \
  X(Timeout, "The endpoint did not answer in time; raise pull.timeout or lower the load.")                         \
  X(CertificateNotTrusted, "The certificate of the endpoint is not trusted; set pull.tls of a ProfilingTarget.")    \
  X(HTTPError, "The endpoint answered with a status that is not 200; the message has it.")                         \
  X(NotAProfile, "The endpoint's answer is not a pprof profile; check path and port.")                             \
  X(ProfileTooLarge, "The profile is larger than the limit.")                                                      \
  X(ProfilingInUse, "The program says that CPU profiling is already in use; stop the other profiler.")             \
  X(BackendUnreachable, "The backend did not take the profile and will be tried again; look at the backend.")      \
  X(BackendUnauthorized, "The backend refused the credentials (401, 403); mend the backend.")                      \
  X(BackendRefused, "The backend refused the profile for good; the message has its answer.")                       \
  X(Expired, "The profile waited longer than the ingestion window of its backend.")                                \
  X(SpoolDamaged, "The spool on the node's disk could not be read and was begun anew.")                            \
  X(QueueFull, "The queue of undelivered profiles was full and the oldest had to go; look at the backend.")        \
  X(AgentStopped, "The agent, which had no spool on a disk, was stopped before the backend took the profile.")     \
  X(ProfilesIncomplete, "Something is missing on the node; the message says what its profiles lack and what to do.")  \
  X(SamplingUnavailable, "eBPF sampling does not run on this node; the node's problems say why.") \
  X(CPUBudgetReached, "The agent samples less than wanted to stay within budget.cpu of its AgentPool; raise it.") \
  X(MemoryLimitNear, "The agent's memory is near its limit and its caches are smaller; raise its memory limit.")
// clang-format on

#define FF_REASON_CONSTANT(name, meaning) inline constexpr std::string_view k##name = #name;
FF_REASONS(FF_REASON_CONSTANT)
#undef FF_REASON_CONSTANT

#define FF_REASON_ROW(name, meaning) Reason{#name, meaning},
inline constexpr std::array kAll = {FF_REASONS(FF_REASON_ROW)};
#undef FF_REASON_ROW

}  // namespace reasons
}  // namespace flamefleet
