/// Parses messages of a broker or worker. Everything from another process is input, so a malformed
/// message is an error, never a failed assertion.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "common/result.hpp"

namespace leasehold::client {

/// Does what Message::from_json does, but reports a malformed message as MalformedMessage, because
/// the sender is at fault, not the user. Pure.
template <class Message>
Result<Message> parse_message(const nlohmann::json& json) {
  auto message = Message::from_json(json);
  if (!message) return fail(Errc::MalformedMessage, "malformed message: " + message.error().detail);
  return message;
}

/// Returns the elements of a reply {"items": [...]}. Pure.
/// Errors: MalformedMessage for a reply without the list, or with an element that is not a View.
template <class View>
Result<std::vector<View>> parse_items(const nlohmann::json& reply) {
  const auto items = reply.find("items");
  if (items == reply.end() || !items->is_array()) {
    return fail(Errc::MalformedMessage, "the broker's reply has no list of items");
  }
  std::vector<View> views;
  for (const nlohmann::json& item : *items) views.push_back(TRY(parse_message<View>(item)));
  return views;
}

}  // namespace leasehold::client
