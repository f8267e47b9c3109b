/// The thread of a session: runs its lease and its text.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <future>
#include <thread>

#include "ipc/client/lease_holder.hpp"
#include "ipc/client/session.hpp"
#include "tools/client/text.hpp"

namespace leasehold::api {

/// Lifetime: shared by a session and its streams; release() before the session goes. Threads: one
/// caller at a time; cancel() from any.
class SessionCore {
 public:
  explicit SessionCore(client::SessionConfig config);
  ~SessionCore();
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  /// As Session::acquire(), lease(), generate() and release().
  Result<Lease> acquire();
  std::optional<Lease> lease();
  Result<std::shared_ptr<Text>> begin(wire::RequestSubmit request,
                                      std::optional<TextIdentity> identity);
  void release();

  /// Cancels the text, unless it has ended. Does not wait.
  void cancel(const std::shared_ptr<Text>& text);

 private:
  using Reply = leasehold::Result<wire::LeaseAcquired>;
  enum class Replaces : std::uint8_t { Nothing, EarlierLease };
  Reply acquire_once(Replaces replaces);
  template <class Action>
  auto on_thread(Action action);
  bool is_busy() const { return text_ && !text_->has_ended(); }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  client::AsioTimers timers_{io_};
  const client::SessionConfig config_;
  std::shared_ptr<Text> text_;  ///< The last one.
  // Used on the thread only.
  std::shared_ptr<client::LeaseHolder> holder_;
  std::shared_ptr<client::TenantSession> session_;  ///< Of `running_`.
  std::shared_ptr<Text> running_;
  std::thread thread_;
};

}  // namespace leasehold::api
