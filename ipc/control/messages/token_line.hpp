/// The line of a token without logprobs, written and read without a tree of JSON values.
///
/// A small model emits tens of thousands of tokens per second, and most of them look like this. The
/// general writer and parser handle every other line, and give the same result for these. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ipc/control/messages/tenant.hpp"

namespace leasehold::control {

/// Returns the bytes that Peer::notify would send, with the newline. Nothing for a token with
/// logprobs.
std::optional<std::string> token_line(const wire::TokenEmitted& token);

/// Reads a token of this request. Returns nothing for a line that needs the general parser: a line
/// of another form, with escaped characters, or with characters beyond ASCII.
std::optional<wire::TokenEmitted> read_token_line(std::string_view line, const RequestId& request);

}  // namespace leasehold::control
