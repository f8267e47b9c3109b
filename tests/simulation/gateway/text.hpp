/// The text that the modelled hosts generate: what each computes is a function of the seed, of its
/// identity, of the choice and of the position.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.hpp"
#include "tools/gateway/decide/host_stream.hpp"

namespace leasehold::gateway::simulation {

/// Two of one model that compute differently, and one of another model.
inline constexpr std::array<std::string_view, 3> kIdentities{
    "sha256:1111111111111111111111111111111111111111111111111111111111111111/int8/f16/1",
    "sha256:1111111111111111111111111111111111111111111111111111111111111111/f32/f16/1",
    "sha256:2222222222222222222222222222222222222222222222222222222222222222/int8/f16/1"};

using IdentityIndex = std::size_t;

class Text {
 public:
  /// `lengths`: tokens per choice.
  Text(std::uint64_t seed, AnswerForm form, std::vector<std::uint32_t> lengths)
      : seed_(seed), form_(form), lengths_(std::move(lengths)) {}

  AnswerForm form() const { return form_; }
  std::uint32_t choices() const { return static_cast<std::uint32_t>(lengths_.size()); }
  std::uint32_t length(std::uint32_t choice) const { return lengths_[choice]; }

  TokenId token(IdentityIndex identity, std::uint32_t choice, std::uint32_t position) const;
  /// True if no event belongs to the token; the same for every identity.
  bool is_silent(std::uint32_t choice, std::uint32_t position) const;
  /// What a client receives for the token; empty if it is silent.
  std::string group(IdentityIndex identity, std::uint32_t choice, std::uint32_t position) const;
  /// What a client receives at the end: the last events, or the document.
  std::string ending(IdentityIndex identity) const;

  /// The same with the marks of a continuable stream.
  std::string framed_group(IdentityIndex identity, std::uint32_t choice,
                           std::uint32_t position) const;
  std::string framed_ending(IdentityIndex identity) const;

 private:
  std::uint64_t at(IdentityIndex identity, std::uint32_t choice, std::uint32_t position) const;

  std::uint64_t seed_;
  AnswerForm form_;
  std::vector<std::uint32_t> lengths_;
};

}  // namespace leasehold::gateway::simulation
