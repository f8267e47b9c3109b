#include "tools/brokerctl/arguments/requested_output.hpp"

namespace leasehold::brokerctl {

Output requested_output(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool value_follows = words[i] == "-o" || words[i] == "--output";
    if (value_follows && i + 1 < words.size() && words[i + 1] == "json") return Output::Json;
    if (words[i] == "-ojson" || words[i] == "--output=json") return Output::Json;
  }
  return Output::Table;
}

}  // namespace leasehold::brokerctl
