/// What the tokens of a text depend on, besides its request. Workers of equal identity compute the
/// same bits, so a text that began on one continues on another without a seam.
///
/// A worker announces its identity when it is ready. Holders get the identity with their lease, and
/// request the same identity where a text continues. On the wire and in views it is one string:
///
///     sha256:9f86d081…0a08/int8/f16/1
///     content of the model's files, arithmetic, KV cache, version of the computation
///
/// A chat template that replaces the one in the files adds a fifth part, its 16 digits.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// Raised by every change after which the same model, request and seed give other tokens: in
/// kernels, sampling, default seeds, tokenizers, chat templates or grammars. golden_text_test.cpp
/// pins it.
inline constexpr std::uint32_t kTextVersion = 5;

struct TextIdentity {
  std::string content;  ///< SHA-256 of the model's files, in 64 lower-case hex digits.
  /// Arithmetic of the matmuls: "f32", "int8" or "f16"; with "_short_rope" behind it if the context
  /// limits a longrope model to the divisors of short texts.
  std::string arithmetic;
  std::string kv_type;  ///< Type of the KV cache: "f16", "f32" or "q8_0".
  std::uint32_t version = kTextVersion;
  /// 16 lower-case hex digits that tell replaced chat templates apart; empty: that of the files.
  std::string chat_template;

  /// The inverse of to_string. Errors: BadRequest, which shows the expected form.
  static Result<TextIdentity> parse(std::string_view text);

  auto operator<=>(const TextIdentity&) const = default;
};

std::string to_string(const TextIdentity& identity);

/// The name of the content in messages and in `lease.acquire`: "sha256:" and the digits. The short
/// name has the first 12 digits, for people.
std::string content_name(const TextIdentity& identity);
std::string short_content_name(const TextIdentity& identity);

/// Says which parts differ: "the arithmetic is int8 and not f32". Empty for equal identities.
std::string difference(const TextIdentity& wanted, const TextIdentity& other);

/// The name of a model in a request: the name that its worker announces, or "sha256:" and at least
/// 8 digits of its content.
struct ModelName {
  static constexpr std::string_view kContentPrefix = "sha256:";
  static constexpr std::size_t kMinDigits = 8;

  /// Errors: BadRequest for an empty text, for more than 256 bytes or control characters, and for a
  /// content of fewer digits than 8, of more than 64, or of others than lower-case hex digits.
  static Result<ModelName> parse(std::string text);

  /// `announced` is the name that a worker gives its model; `identity` is null for a worker of an
  /// earlier version.
  bool matches(std::string_view announced, const TextIdentity* identity) const;

  bool operator==(const ModelName&) const = default;

  std::string text;
};

}  // namespace leasehold
