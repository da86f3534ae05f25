// SPDX-License-Identifier: Apache-2.0
#include "operator/render/print.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/clock.h"
#include "operator/render/yaml_reader.h"

namespace flamefleet::render {
namespace {

using nlohmann::json;

std::string Plural(size_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string AskersText(const plan::Askers& askers) {
  std::string text = askers.targets.empty() ? "" : "ProfilingTarget " + Join(askers.targets);
  if (askers.annotations) text += text.empty() ? "annotations" : " and annotations";
  if (askers.pool) text += "scope of the AgentPool";  // only where nobody else asks
  return text;
}

std::string ParametersText(const api::StringMap& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    text += (text.empty() ? "?" : "&") + name + "=" + value;
  return text;
}

// "pulled from port 6060/debug/pprof/heap every 15s", "eBPF of container app"
std::string HowText(const plan::Collection& collection) {
  if (!collection.pull)
    return "eBPF of container " + collection.container +
           (collection.thread_labels ? " by thread" : "");
  const plan::PullSettings& pull = *collection.pull;
  return std::string("pulled ") + (pull.tls ? "by HTTPS " : "") + "from port " +
         std::to_string(pull.port) + pull.path + ParametersText(pull.parameters) + " every " +
         std::to_string(pull.interval_ns / kNanosPerSecond) + "s" +
         (collection.container.empty() ? "" : " of container " + collection.container);
}

std::string PodText(const PlannedPod& planned) {
  const api::ObjectMeta& meta = planned.pod->pod.meta;
  std::string text = "  " + meta.ns + "/" + meta.name + "  (" + planned.pod->kind + "; " +
                     planned.pod->source.Text() + ")";
  if (planned.pools.size() > 0) text += "  on nodes of AgentPool " + Join(planned.pools);
  text += "\n";
  for (const plan::Collection& collection : planned.plan.collections)
    text += "    " + CollectionText(collection) + "\n";
  for (const plan::Refusal& refusal : planned.plan.refusals)
    text += "    " + RefusalText(refusal) + "\n";
  if (planned.nothing) text += "    not profiled: " + ProblemText(*planned.nothing) + "\n";
  if (!planned.assumption.empty()) text += "    assumed: " + planned.assumption + "\n";
  for (const plan::Problem& warning : planned.plan.warnings)
    text += "    warning: " + ProblemText(warning) + "\n";
  return text;
}

json AskersJson(const plan::Askers& askers) {
  return {{"targets", askers.targets}, {"annotations", askers.annotations}, {"pool", askers.pool}};
}

json SourceJson(const Source& source) {
  json out = {{"file", source.file}};
  if (source.document != 0) out["document"] = source.document;
  if (source.item != 0) out["item"] = source.item;
  return out;
}

json PodJson(const PlannedPod& planned) {
  const api::ObjectMeta& meta = planned.pod->pod.meta;
  json out = {{"namespace", meta.ns},          {"name", meta.name},
              {"kind", planned.pod->kind},     {"source", SourceJson(planned.pod->source)},
              {"agentPools", planned.pools},   {"collected", json::array()},
              {"notCollected", json::array()}, {"warnings", json::array()}};
  for (const plan::Collection& collection : planned.plan.collections)
    out["collected"].push_back(CollectionJson(collection));
  for (const plan::Refusal& refusal : planned.plan.refusals)
    out["notCollected"].push_back(RefusalJson(refusal));
  for (const plan::Problem& warning : planned.plan.warnings)
    out["warnings"].push_back(ProblemJson(warning));
  if (!planned.assumption.empty()) out["assumed"] = planned.assumption;
  if (planned.nothing) out.update(ProblemJson(*planned.nothing));
  return out;
}

// Text that is itself without quotes, whoever reads it.
bool IsPlain(const std::string& text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  return text.find_first_not_of(kSafe) == std::string::npos && !text.starts_with('-') &&
         ResolvePlainScalar(text).is_string();
}

void Emit(YAML::Emitter& out, const std::string& text) {
  if (IsPlain(text)) {
    out << text;
  } else {
    out << YAML::DoubleQuoted << text;
  }
}

void Emit(YAML::Emitter& out, const json& value) {
  if (value.is_object()) {
    out << (value.empty() ? YAML::Flow : YAML::Block) << YAML::BeginMap;
    for (const auto& [name, entry] : value.items()) {
      out << YAML::Key;
      Emit(out, name);
      out << YAML::Value;
      Emit(out, entry);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << (value.empty() ? YAML::Flow : YAML::Block) << YAML::BeginSeq;
    for (const json& entry : value)
      Emit(out, entry);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    Emit(out, value.get_ref<const std::string&>());
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();  // true, 1.5: the same in both
  }
}

}  // namespace

std::string ProblemText(const plan::Problem& problem) {
  return std::string(problem.reason) + ": " + problem.message;
}

std::string CollectionText(const plan::Collection& collection) {
  return std::string(ProfileTypeName(collection.type)) + ": " + HowText(collection) + ", to " +
         collection.backend + " as service " + collection.labels.at("service_name") + "  [" +
         AskersText(collection.askers) + "]";
}

std::string RefusalText(const plan::Refusal& refusal) {
  return std::string(ProfileTypeName(refusal.type)) +
         ": not collected: " + ProblemText(refusal.problem) + "  [" + AskersText(refusal.askers) +
         "]";
}

json CollectionJson(const plan::Collection& collection) {
  json out = {{"profile", ProfileTypeName(collection.type)},
              {"mode", collection.pull ? "Pull" : "EBPF"},
              {"backend", collection.backend},
              {"labels", collection.labels},
              {"askedBy", AskersJson(collection.askers)}};
  if (!collection.container.empty()) out["container"] = collection.container;
  if (!collection.pull) {
    out["threadLabels"] = collection.thread_labels;
    return out;
  }
  const plan::PullSettings& pull = *collection.pull;
  out["pull"] = {{"port", pull.port},
                 {"path", pull.path},
                 {"parameters", pull.parameters},
                 {"intervalSeconds", pull.interval_ns / kNanosPerSecond},
                 {"timeoutSeconds", pull.timeout_ns / kNanosPerSecond},
                 {"scheme", pull.tls ? "HTTPS" : "HTTP"}};
  if (pull.tls) {
    out["pull"]["tls"] = {{"insecureSkipVerify", pull.tls->insecure_skip_verify},
                          {"caBundle", pull.tls->ca_pem},
                          {"serverName", pull.tls->server_name}};
  }
  return out;
}

json ProblemJson(const plan::Problem& problem) {
  return {{"reason", problem.reason}, {"message", problem.message}};
}

json RefusalJson(const plan::Refusal& refusal) {
  json out = ProblemJson(refusal.problem);
  out["profile"] = ProfileTypeName(refusal.type);
  out["askedBy"] = AskersJson(refusal.askers);
  return out;
}

std::string PlanText(const OfflinePlan& plan) {
  std::string text = "The operator would make " + Plural(plan.objects.size(), "object") + ":\n";
  for (const json& object : plan.objects)
    text += "  " + ObjectText(object) + "\n";
  text += "It would profile " + std::to_string(plan.profiled) + " of " +
          Plural(plan.considered, "pod") + ":\n";
  for (const PlannedPod& pod : plan.pods)
    text += PodText(pod);
  for (const api::ProfilingTarget* target : plan.without_pods) {
    text += "ProfilingTarget " + target->meta.ns + "/" + target->meta.name +
            " selects no pod of the manifests\n";
  }
  for (const PlannedHost& host : plan.hosts) {
    text += "Processes of the nodes of AgentPool " + host.pool + ": " +
            (host.nothing ? "not profiled: " + ProblemText(*host.nothing)
                          : "cpu: by eBPF, to " + host.backend) +
            "\n";
  }
  return text;
}

json PlanJson(const OfflinePlan& plan, const std::vector<Finding>& findings) {
  json out = {{"objects", plan.objects},
              {"pods", json::array()},
              {"hosts", json::array()},
              {"targetsWithoutPods", json::array()},
              {"invalid", json::array()}};
  for (const api::ProfilingTarget* target : plan.without_pods)
    out["targetsWithoutPods"].push_back(
        {{"namespace", target->meta.ns}, {"name", target->meta.name}});
  for (const PlannedHost& host : plan.hosts) {
    json entry = host.nothing ? ProblemJson(*host.nothing) : json{{"backend", host.backend}};
    entry["agentPool"] = host.pool;
    out["hosts"].push_back(std::move(entry));
  }
  for (const PlannedPod& pod : plan.pods)
    out["pods"].push_back(PodJson(pod));
  for (const Finding& finding : findings) {
    json entry = SourceJson(finding.source);
    entry["object"] = finding.object;
    entry["field"] = finding.field;
    entry["cause"] = finding.cause;
    out["invalid"].push_back(std::move(entry));
  }
  return out;
}

std::string ToYaml(const json& value) {
  YAML::Emitter out;
  Emit(out, value);
  return std::string(out.c_str()) + "\n";
}

std::string FindingText(const Finding& finding) {
  std::string text = finding.source.Text();
  for (const std::string* part : {&finding.object, &finding.field, &finding.cause}) {
    if (!part->empty()) text += ": " + *part;
  }
  return text;
}

}  // namespace flamefleet::render
