/// Numbers the events of a stream that a client can come back to, and leaves out those it has.
/// Pure.
///
/// "12.1-5f3a9c2b" is the second event of the token at position 12; those of the end have the
/// number of tokens as position. The last part is a checksum of how the worker computes the text:
/// its identity (ipc/control/text_identity.hpp) and its context. Another worker has other tokens
/// there, or cuts the text off elsewhere, so it does not continue the stream. A text that is
/// replayed makes the same events of each token, so an id means the same in every replay. "[DONE]",
/// which ends every stream of chunks, has none; nor have the events that report an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_answer.hpp"

namespace leasehold::http {

class EventIds {
 public:
  /// `last_event_id`: of the last event that the client has, as it sent it. `how_computed`: by this
  /// worker. Errors: RequestIdConflict for an event of a text that was computed otherwise,
  /// BadRequest for anything that is not an id.
  static Result<EventIds> after(const std::optional<std::string>& last_event_id,
                                std::string_view how_computed);

  /// Gives the next events of this position their ids, but for "[DONE]". Removes those that the
  /// client has.
  void number(std::uint32_t position, ServerEvents& events);

  /// The client has an event of a later position than that of the end.
  bool is_beyond(std::uint32_t end) const { return last_ && last_->position > end; }

 private:
  struct Id {
    std::uint32_t position = 0;
    std::uint32_t index = 0;
    auto operator<=>(const Id&) const = default;
  };
  static std::optional<Id> parse(std::string_view text);

  std::string checksum_;    // of how the text is computed, as ids have it
  std::optional<Id> last_;  // of the client
  Id next_;
};

}  // namespace leasehold::http
