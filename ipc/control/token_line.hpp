/// The line of a token without logprobs, written and read without a tree of JSON values.
///
/// A small model emits tens of thousands of tokens per second, and most of them look like this. The
/// general writer and parser handle every other line; for these, both ways give the same result.
/// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ipc/control/messages_tenant.hpp"

namespace leasehold::control {

/// The bytes that Peer::notify sends, with the newline. Nothing for a token with logprobs.
std::optional<std::string> token_line(const wire::TokenEmitted& token);

/// The token of this request. Nothing for a line that the general parser has to judge: it has
/// another form, escaped characters, or is not plain ASCII.
std::optional<wire::TokenEmitted> read_token_line(std::string_view line, const RequestId& request);

}  // namespace leasehold::control
