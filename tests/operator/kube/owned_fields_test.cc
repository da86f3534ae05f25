// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/owned_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using nlohmann::json;

json Entry(const std::string& manager, const json& fields, const std::string& subresource = "") {
  json entry = {{"manager", manager},
                {"operation", "Apply"},
                {"time", "2026-11-29T17:00:00Z"},
                {"fieldsV1", fields}};
  if (!subresource.empty()) entry["subresource"] = subresource;
  return entry;
}

json Object(const std::vector<json>& entries) {
  return {{"metadata", {{"resourceVersion", "7"}, {"managedFields", entries}}}};
}

const json kFields = {{"f:spec", {{"f:a", json::object()}, {"f:b", json::object()}}}};
const json kFewerFields = {{"f:spec", {{"f:a", json::object()}}}};

TEST(OwnedFields, AFieldThatWasTakenFromUsChangesThem) {
  const OwnedFields all = ReadOwnedFields(Object({Entry(kFieldManager, kFields)}));
  const OwnedFields fewer = ReadOwnedFields(Object({Entry(kFieldManager, kFewerFields)}));
  EXPECT_NE(all.spec, fewer.spec);
  EXPECT_EQ(all.version, "7");
}

TEST(OwnedFields, TimeAndOtherManagersDoNotMatter) {
  json later = Entry(kFieldManager, kFields);
  later["time"] = "2027-01-01T00:00:00Z";
  json update = Entry(kFieldManager, kFewerFields);
  update["operation"] = "Update";
  EXPECT_EQ(ReadOwnedFields(Object({Entry(kFieldManager, kFields)})),
            ReadOwnedFields(Object({Entry("kubectl", kFewerFields), later, update,
                                    Entry(kFieldManager, kFewerFields, "status")})));
}

TEST(OwnedFields, WithoutAnEntryOfOursNothingIsOurs) {
  EXPECT_EQ(ReadOwnedFields(Object({Entry("kubectl", kFields)})).spec, 0U);
  EXPECT_EQ(ReadOwnedFields(json("rubbish")), OwnedFields{});
  EXPECT_EQ(ReadOwnedFields({{"metadata", {{"managedFields", {1, "x", nullptr}}}}}), OwnedFields{});
}

}  // namespace
}  // namespace flamefleet
