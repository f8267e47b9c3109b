/// Numbers the events of a stream that a client can resume, and drops the events that a returning
/// client already has. Pure.
///
/// The id "12.1-5f3a9c2b-1795939417" names the second event of the token at position 12. The events
/// of the end have the number of tokens as their position. The second part is a checksum of how the
/// worker computes the text: the text identity (ipc/control/tokens/text_identity.hpp), the
/// context length and the version of the adapter. A worker with another checksum may generate other
/// tokens or end the text elsewhere, so it does not continue the stream. The last part is the
/// text's `created`: a worker or gateway that has never seen the text goes on with it, also in the
/// prompt that the chat template makes. Ids of older workers lack it. A replayed text makes the
/// same events for each token, so an id means the same in every replay. "[DONE]", which ends every
/// stream of chunks, and events that report an error have no id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_answer.hpp"

namespace leasehold::http {

/// The `created` of a text, a Unix time, from the id of one of its events; nullopt if it has none.
std::optional<std::int64_t> created_in(std::string_view event_id);

class EventIds {
 public:
  /// `last_event_id` is the client's Last-Event-ID. `how_computed` describes how this worker
  /// computes the text. Errors: RequestIdConflict for an id with another checksum; BadRequest for
  /// anything that is not an id.
  static Result<EventIds> after(const std::optional<std::string>& last_event_id,
                                std::string_view how_computed, std::int64_t created_unix_s);

  /// Gives ids to the next events of this position, except "[DONE]", and removes the events that
  /// the client has.
  void number(std::uint32_t position, ServerEvents& events);

  /// True if the client's last event has a later position than the end of the text.
  bool is_beyond(std::uint32_t end) const { return last_ && last_->position > end; }

 private:
  struct Id {
    std::uint32_t position = 0;
    std::uint32_t index = 0;
    auto operator<=>(const Id&) const = default;
  };
  static std::optional<Id> parse(std::string_view text);

  std::string checksum_;  // of how the text is computed, in hexadecimal
  std::int64_t created_unix_s_ = 0;
  std::optional<Id> last_;  // the client's last event
  Id next_;
};

}  // namespace leasehold::http
