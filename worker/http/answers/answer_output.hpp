/// The part of an answer that is not sent yet: events of a stream, or one body.
///
/// With ApiRequest::beat the answer is a continuable stream: comments tell a gateway what another
/// host needs to continue after any token (emitted_tokens.hpp).
///
/// | comment | meaning |
/// | --- | --- |
/// | t CHOICE POSITION TOKEN | the events since the last such comment are those of this token |
/// | a CHOICE SHA256 | the version of its adapter |
/// | e | the answer is complete |
/// | x CODE MS | an Errc ended it; a retry before MS has passed fails, 0: not known |
/// | b | a heartbeat |
///
/// A token without an event has the comment alone. Numbers are decimal, POSITION counts the tokens
/// of a choice from 0. The ends of all choices follow the last token, because the host that
/// continues sends all of them. If the request does not stream, the events are "answer", whose data
/// is the body, or "error".
///
/// Lifetime: the request outlives it. Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "worker/http/api/api_answer.hpp"
#include "worker/http/api/event_ids.hpp"

namespace leasehold::http {

class AnswerOutput {
 public:
  explicit AnswerOutput(const ApiRequest& request);

  /// Numbers the events, so that the client can resume the stream.
  void set_ids(EventIds ids) { ids_ = std::move(ids); }
  const std::optional<EventIds>& ids() const { return ids_; }

  /// Adds the part of a choice that the token makes.
  void add(ChoicePart part, const wire::TokenEmitted& token, UsageCount usage);
  /// The same for a token that another host has sent: the events are not sent again.
  void skip(ChoicePart part, UsageCount usage) { (void)writer_->add(std::move(part), usage); }
  /// Names the version of its adapter that generates a choice (RequestSubmitted::adapter_digest).
  void name_adapter(std::size_t choice, std::string_view digest);
  /// Adds the last part of a choice. `position`: the number of its tokens.
  void end_choice(ChoicePart part, std::uint32_t position, UsageCount usage);
  /// Call when all choices have ended.
  void end(std::uint32_t position, UsageCount usage);
  /// Writes the body of an answer that ended with log probabilities, which takes too long for the
  /// thread of all streams. The function may run on any thread and reads nothing else; pass what it
  /// returns to `set_body`. Null for other answers.
  std::function<std::string()> take_body_work();
  /// Makes the body of an answer that does not stream the next thing to send.
  void set_body(std::string body);
  /// Ends the whole answer, with all its choices. `x_request_id`: its X-Request-Id.
  void fail_with(const Error& error, const std::string& x_request_id);
  /// Adds a heartbeat. Without an event, the stream sends a comment.
  void beat();
  /// Takes the refusal that is the answer, if the schema may be its cause.
  std::optional<Error> take_refused() { return std::exchange(refused_, std::nullopt); }
  void name_schema(Error refused) {
    answer_ = error_answer({std::move(refused), request_.schema_path});
  }

  /// The answer that is sent in place of a stream, once.
  std::optional<Answer> take_answer() { return std::exchange(answer_, std::nullopt); }
  bool has_events() const { return !unsent_.empty(); }
  /// The events to send now.
  ServerEvents take_events();

  /// True once the head of a stream is sent.
  bool is_begun() const { return is_begun_; }
  Duration silent() const { return std::chrono::steady_clock::now() - written_at_; }
  /// True if the answer ends with what is unsent.
  bool is_answered() const { return is_answered_; }
  /// True if all choices have ended without an error.
  bool is_whole() const { return is_whole_; }

 private:
  struct ChoiceEnd {
    ChoicePart part;
    std::uint32_t position = 0;
  };
  bool is_continuable() const { return request_.beat.has_value(); }
  void add_events(ServerEvents events, std::uint32_t position);
  void add_comment(std::string comment);
  ServerEvents failure(const Error& error, const std::string& x_request_id);

  const ApiRequest& request_;
  std::shared_ptr<AnswerWriter> writer_;
  std::optional<EventIds> ids_;  // set for a stream that the client can resume
  ServerEvents unsent_;
  std::vector<ChoiceEnd> ends_;  // of a continuable stream, until all choices have ended
  std::function<std::string()> body_work_;
  std::optional<Answer> answer_;  // sent in place of a stream
  std::optional<Error> refused_;  // what `answer_` says, if the schema may be the cause
  bool is_begun_ = false;
  std::chrono::steady_clock::time_point written_at_ = std::chrono::steady_clock::now();
  bool is_answered_ = false;
  bool is_whole_ = false;
};

}  // namespace leasehold::http
