/// Reads the answer of a continuable stream (worker/http/answers/answer_output.hpp) as a gateway
/// does.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::testing {

using Tokens = std::vector<std::int32_t>;

/// A token of an answer, with the bytes that are sent for it.
struct Group {
  std::size_t choice = 0;
  std::size_t position = 0;
  std::int32_t token = 0;
  std::string bytes;
};

struct ReadStream {
  std::vector<Group> groups;
  std::string ending;
  bool is_complete = false;
};

/// Leaves out what follows the last whole group, and beats.
inline ReadStream read_stream(std::string_view text) {
  ReadStream read;
  std::string open;
  for (auto end = text.find("\n\n"); end != std::string_view::npos; end = text.find("\n\n")) {
    const std::string block(text.substr(0, end + 1));
    text.remove_prefix(end + 2);
    const auto comment = block.rfind("\n: ") == std::string::npos ? 0 : block.rfind("\n: ") + 1;
    if (!block.substr(comment).starts_with(": ")) {
      open += block + "\n";
      continue;
    }
    if (comment > 0) open += block.substr(0, comment) + "\n";
    if (block == ": b\n") continue;
    if (block == ": e\n") {
      read.ending = std::exchange(open, {});
      read.is_complete = text.empty();
      continue;
    }
    Group group{.bytes = std::exchange(open, {})};
    const std::string fields = block.substr(comment);
    REQUIRE(std::sscanf(fields.c_str(), ": t %zu %zu %d\n", &group.choice, &group.position,
                        &group.token) == 3);
    read.groups.push_back(std::move(group));
  }
  return read;
}

/// What all groups and the end send.
inline std::string joined(const ReadStream& read) {
  std::string all;
  for (const Group& group : read.groups) all += group.bytes;
  return all + read.ending;
}

/// The tokens of each choice.
inline std::vector<Tokens> tokens_of(std::span<const Group> groups, std::size_t choices) {
  std::vector<Tokens> tokens(choices);
  for (const Group& group : groups) tokens[group.choice].push_back(group.token);
  return tokens;
}

}  // namespace leasehold::testing
