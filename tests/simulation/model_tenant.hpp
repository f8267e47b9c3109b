/// A holder of leases: acquires, submits, renews, resizes, repeats calls, disconnects and rebinds.
/// It reads one text after the other. The next process of a tenant reads a resumable one again.
#pragma once

#include <functional>

#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

class Tenant final : public Process, private StreamReader {
 public:
  using FindWorker = std::function<Worker*(const std::string& name)>;

  Tenant(Dependencies deps, std::string name, FindWorker find_worker);

  /// Does one thing that a tenant may do now.
  void act();
  /// Does what its text needs next, and nothing else.
  void continue_text();
  std::uint64_t text_id() const { return text_.id; }
  void on_death() override;
  /// The broker's notice: the lease drains, or its worker is being replaced.
  void on_draining(const wire::LeaseDraining& notice);
  Connection& link() const { return *link_; }

 private:
  void connect();
  void reconnect();
  void resume_holding();
  bool is_connected() const { return link_->ends[Connection::kClient].open; }
  void acquire();
  void send_acquire();
  void acquired(const std::string& request, const Result<Answer>& answer);
  void replace(wire::RebindMode mode);
  void replaced(wire::RebindMode mode, LeaseId old, const wire::LeaseAcquired& given);
  void submit();
  void begin_text();
  void abandon_text();
  std::string choose_adapter() const;
  void on_token(const Request& request, const Token& token) override;
  void on_end(const Request& request, StreamEnd end) override;
  void on_moved(const Request& request, bool moved) override;
  /// The stream ended without a typed end.
  void handle_close(const Request& request);
  void lose_lease(const Request& request);
  void leave_stream();
  void resize_or_leave();
  template <class Sent>
  void notify_broker(Sent message);

  Dependencies deps_;
  Broker* broker_;
  std::string name_;
  std::string adapter_;  ///< Of its text; empty: the base model.
  FindWorker find_worker_;
  Connection* link_ = nullptr;
  std::optional<LeaseId> lease_;
  std::optional<LeaseId> lost_lease_;  ///< The next tenant rebinds it.
  std::string worker_;
  std::string token_;
  std::optional<wire::LeaseAcquire> asked_;  ///< The newest acquire; it may be repeated.
  bool call_pending_ = false;
  std::map<std::string, LeaseId> granted_;  ///< By request id: the same id returns the same lease.
  Request* request_ = nullptr;
  Connection* stream_ = nullptr;
  Text text_;                        ///< What has arrived.
  bool is_continued_ = false;        ///< It was begun by another process, or submitted before.
  bool resumes_next_ = false;        ///< The stream broke, and the worker may go on with the text.
  std::optional<LeaseId> previous_;  ///< Replaced by `lease_`; its request is to move.
};

}  // namespace leasehold::simulation
