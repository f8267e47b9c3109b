/// Reading what another process answered.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::cli {

/// Like Message::from_json, with MalformedMessage for what does not fit: the fault is with the
/// program that answered, not with what the user typed.
template <class Message>
Result<Message> read_answer(const nlohmann::json& json) {
  auto message = Message::from_json(json);
  if (!message) {
    return fail(Errc::MalformedMessage, "the other end's message: " + message.error().detail);
  }
  return message;
}

}  // namespace leasehold::cli
