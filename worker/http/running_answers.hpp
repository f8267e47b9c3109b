/// The answers that are being generated: what each consists of, and how to end it.
///
/// An answer is listed from the start of its first session until it is sent or its client has left.
/// While a session has no lease, the worker's socket for tenants does not know its request; then
/// only this list does.
///
/// Lifetime: outlives the registrations. Threads: the one that runs the server's io_context.
#pragma once

#include <functional>
#include <list>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/messages/requests.hpp"

namespace leasehold::http {

struct RunningChoice {
  RequestId engine_request_id;
  std::uint32_t prompt_tokens = 0;  ///< 0: not known yet.
  std::uint32_t emitted_tokens = 0;
  bool awaits_lease = false;
};

struct RunningAnswer {
  std::string id;  ///< As the client reads it: "chatcmpl-req-1".
  TenantId tenant;
  ApiKeyId key;
  std::string x_request_id;
  bool embeds = false;  ///< Its choices are embeddings.
  TimePoint began_at;
  std::function<std::vector<RunningChoice>()> choices;  ///< Those that have not ended.
  /// Ends the answer with this error, at once or when it lacks a lease.
  std::function<void(const Error&, bool at_once)> end;
};

class RunningAnswers {
 public:
  /// Lists an answer while it exists.
  class Registration {
   public:
    Registration(RunningAnswers& answers, RunningAnswer answer)
        : answers_(answers), entry_(answers.answers_.insert(answers.answers_.end(), answer)) {}
    ~Registration() { answers_.answers_.erase(entry_); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    RunningAnswers& answers_;
    std::list<RunningAnswer>::iterator entry_;
  };

  /// Every choice that has not ended, with the id of its answer and its key, in no order.
  std::vector<wire::RequestView> views(TimePoint now) const;
  /// The ids, and those of the choices of the same answers. The first choice has the id of the
  /// answer, and names it also when that choice has ended.
  std::unordered_set<RequestId> with_other_choices(std::span<const RequestId> ids) const;
  /// Ends the answers with a choice in `ids`. Returns the ids of all their choices. This worker has
  /// stopped the choices in `stopped`, so their answers end by themselves, with the tokens they
  /// have; an answer with another choice, which may run on another worker, ends at once.
  std::vector<RequestId> end(const std::unordered_set<RequestId>& ids,
                             std::span<const RequestId> stopped, const Error& why);
  const std::list<RunningAnswer>& all() const { return answers_; }

 private:
  std::list<RunningAnswer> answers_;
};

}  // namespace leasehold::http
