/// Makes samples of messages, for the files that list them.
#pragma once

#include "ipc/control/messages.hpp"
#include "message_samples.hpp"

namespace leasehold::testing {

template <class Message>
Result<nlohmann::json> round_trip(const nlohmann::json& json) {
  return TRY(Message::from_json(json)).to_json();
}

inline constexpr const char* kDigest =
    R"("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")";

template <class Message>
MessageSample sample(std::string name, std::string text, std::set<std::string> optionals = {}) {
  return {std::move(name), std::move(text), std::move(optionals), round_trip<Message>};
}

inline std::string with_digest(std::string text) {
  return text.replace(text.find("DIGEST"), 6, kDigest);
}

/// The samples of keys, usage and audit, and those of messages that came later.
std::vector<MessageSample> key_and_audit_samples();
std::vector<MessageSample> adapter_samples();
std::vector<MessageSample> erasure_samples();

}  // namespace leasehold::testing
