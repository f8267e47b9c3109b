/// A JSON sample of every message, with a function that reads and writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::testing {

struct MessageSample {
  std::string name;
  std::string text;                 ///< With every field that can be present.
  std::set<std::string> optionals;  ///< Fields that may be missing.
  Result<nlohmann::json> (*round_trip)(const nlohmann::json&);  ///< from_json, then to_json.

  nlohmann::json json() const { return nlohmann::json::parse(text); }
};

const std::vector<MessageSample>& message_samples();

/// The seed of line_fuzz for the sample: the byte that selects it, then a call that carries it.
std::string line_seed(std::size_t sample);

/// A field of a sample with values that its rule refuses.
struct OutOfRange {
  std::string name;
  std::string pointer;              ///< JSON pointer into the sample.
  std::vector<std::string> values;  ///< JSON.
  std::string field = {};           ///< The name in the error, if it is not that of the pointer.

  std::string name_in_error() const;
};

const std::vector<OutOfRange>& out_of_range_samples();

}  // namespace leasehold::testing
