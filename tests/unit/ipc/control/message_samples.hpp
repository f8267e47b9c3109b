/// One example of every message, as it looks on the wire, and a way to read and write it
/// round_trip.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::testing {

struct MessageSample {
  std::string name;
  std::string text;                 ///< Every field present that may be.
  std::set<std::string> optionals;  ///< Fields that may be missing.
  Result<nlohmann::json> (*round_trip)(const nlohmann::json&);  ///< from_json, then to_json.

  nlohmann::json json() const { return nlohmann::json::parse(text); }
};

const std::vector<MessageSample>& message_samples();

/// A field of a sample set to something its range does not allow.
struct OutOfRange {
  std::string name;
  std::string pointer;  ///< JSON pointer into the sample.
  std::string value;    ///< JSON.
  std::string field;    ///< As the error must name it.
};

const std::vector<OutOfRange>& out_of_range_samples();

}  // namespace leasehold::testing
