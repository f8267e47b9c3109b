/// A holder of leases: acquires, submits, renews, resizes, repeats itself, hangs up, takes over.
#pragma once

#include <functional>

#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

class Tenant final : public Process {
 public:
  using FindWorker = std::function<Worker*(const std::string& name)>;

  Tenant(Dependencies deps, std::string name, FindWorker find_worker);

  /// One thing it may want to do now.
  void act();
  void on_death() override { request_ = nullptr; }
  Connection& link() const { return *link_; }
  const std::string& tenant_name() const { return name_; }
  bool has_lease() const { return lease_.has_value(); }

 private:
  void connect();
  void reconnect();
  void resume_holding();
  bool is_connected() const { return link_->ends[Connection::kClient].open; }
  void acquire();
  void send_acquire();
  void acquired(const std::string& request, const Result<Answer>& answer);
  void submit();
  void handle_token(const Request& request);
  void handle_end(const Request& request);
  void resize_or_leave();
  template <class Sent>
  void notify_broker(Sent message);

  Dependencies deps_;
  Broker* broker_;
  std::string name_;
  FindWorker find_worker_;
  Connection* link_ = nullptr;
  std::optional<LeaseId> lease_;
  std::optional<LeaseId> lost_lease_;  ///< The next one takes over from it.
  std::string worker_;
  std::string token_;
  std::optional<wire::LeaseAcquire> asked_;  ///< The newest acquire, which may be repeated.
  bool call_pending_ = false;
  std::map<std::string, LeaseId> granted_;  ///< By request id: the same id, the same lease.
  const Request* request_ = nullptr;
  Connection* stream_ = nullptr;
};

}  // namespace leasehold::simulation
