#include "broker/server/start/run_broker.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "broker/server/lent_device.hpp"
#include "broker/server/server.hpp"
#include "broker/server/start/fd_keeper.hpp"
#include "broker/server/start/startup_state.hpp"
#include "ipc/control/transport/socket_file.hpp"

namespace leasehold {
namespace {

namespace asio = boost::asio;

/// Creates the folder of the socket if its name is `leasehold`, as in the default path. Any other
/// folder must exist.
void make_socket_folder(const BrokerOptions& options) {
  const auto folder = std::filesystem::path(options.socket).parent_path();
  std::error_code ignored;  // listen_on reports the error with the path
  if (folder.filename() == "leasehold") std::filesystem::create_directory(folder, ignored);
}

void keep_for_restart(FdKeeper& fd_store, std::string_view name, const UniqueFd& fd) {
  if (const auto done = fd_store.keep(name, fd); !done) {
    spdlog::warn("could not store a descriptor name={} detail=\"{}\"", name, done.error().detail);
  }
}

void check_fd_store(const StartupState& startup) {
  const std::uint32_t most = kept::most(startup.recovered.state.config.max_weights_regions);
  const auto shortage = kept::shortage(std::getenv("FDSTORE"), most);
  if (shortage) spdlog::warn("the descriptor store is too small reason=\"{}\"", *shortage);
}

/// Takes over the socket of leasehold-broker.socket.
Result<asio::local::stream_protocol::acceptor> activate(asio::io_context& io,
                                                        const BrokerOptions& options,
                                                        UniqueFd socket) {
  auto acceptor = control::adopt_listener(io, std::move(socket), options.socket);
  if (acceptor) return acceptor;
  return fail(Errc::BadRequest,
              fmt::format("the socket unit does not listen on {}; set --socket and ListenStream= "
                          "to the same path",
                          options.socket));
}

/// Listens on the kept socket if there is one, because connections made while no broker ran wait in
/// its backlog.
Result<asio::local::stream_protocol::acceptor> listen(asio::io_context& io,
                                                      const BrokerOptions& options,
                                                      UniqueFd kept_socket, FdKeeper& fd_store) {
  if (kept_socket) {
    auto again = control::adopt_listener(io, std::move(kept_socket), options.socket);
    if (again) return again;
    spdlog::warn("could not use the kept socket, creating a new one detail=\"{}\"",
                 again.error().detail);
    fd_store.remove(kept::kSocket);
  }
  make_socket_folder(options);
  auto acceptor = TRY(control::listen_on(io, options.socket, options.socket_mode));
  keep_for_restart(fd_store, kept::kSocket, UniqueFd(::dup(acceptor.native_handle())));
  return acceptor;
}

/// Opens the spill directory and checks that the disk has room for the capacity. The files that the
/// previous broker lent are on the disk already; space for the rest is allocated and then freed
/// again.
Result<SpillConfig> open_spill(const BrokerOptions& options, const LentDevice& device,
                               const StartupState& startup) {
  SpillConfig config{.users = static_cast<std::uint32_t>(options.worker_uids.size())};
  if (options.spill_dir.empty()) return config;
  if (device.name != "cpu") {
    return fail(Errc::BadRequest,
                fmt::format("--spill-dir needs KV memory of the host, and this broker lends {}; "
                            "omit --spill-dir",
                            device.name));
  }
  config.capacity_bytes = options.spill_capacity_bytes;
  config.directory =
      std::make_shared<const SpillDirectory>(TRY(SpillDirectory::open(options.spill_dir)));
  std::uint64_t lent_bytes = 0;
  for (const auto& [worker, fd] : startup.kept_spills)
    lent_bytes += SpillSpace::size_of(fd).value_or(0);
  if (lent_bytes < config.capacity_bytes)
    TRY(config.directory->create_file(config.capacity_bytes - lent_bytes));
  return config;
}

/// Checks that /proc belongs to the broker's pid namespace: the broker looks up the user of a
/// caller's process there, by the pid that the kernel reports in that namespace.
Result<void> check_proc() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self", error);
  if (!error && self == std::to_string(::getpid())) return {};
  return fail(Errc::SystemError,
              fmt::format("/proc/self is \"{}\" and this process is {}: /proc is not mounted, or "
                          "shows another pid namespace; mount /proc in that of the broker "
                          "(unshare --mount-proc)",
                          self.string(), ::getpid()));
}

}  // namespace

Result<void> run_broker(const BrokerOptions& options, ReloadOptions reload) {
  TRY(check_proc());
  asio::io_context io(1);
  KeptDescriptors kept = TRY(KeptDescriptors::from_service_manager());
  FdKeeper fd_store(kept.stored_names());
  const auto agent = TRY(start_agent(io, options));
  const LentDevice device = TRY(lent_device(options, agent.get()));
  std::optional<AgentMemory> device_memory;
  if (agent) device_memory.emplace(*agent);
  const SystemClock clock;
  StartupState startup = TRY(load_startup_state(options, device, kept, clock.now()));
  check_fd_store(startup);
  SpillConfig spill = TRY(open_spill(options, device, startup));
  const auto in_use = names_in_use(startup);
  for (const std::string& name : kept.stored_names()) {
    if (!in_use.contains(name)) fd_store.remove(name);
  }
  const bool keep_table = !startup.table_kept && !options.state_dir.empty() && !agent;
  if (keep_table) keep_for_restart(fd_store, kept::kTable, startup.table.writable_fd());
  // The event file is opened before the socket, so that a failure leaves no socket file.
  std::optional<events::EventFile> event_file;
  if (!options.event_log.empty())
    event_file = TRY(events::EventFile::open(options.event_log, options.event_log_bytes));
  UniqueFd activation = kept.take(kept::kActivation);
  const bool is_activated = static_cast<bool>(activation);
  auto acceptor = TRY(is_activated ? activate(io, options, std::move(activation))
                                   : listen(io, options, kept.take(kept::kSocket), fd_store));
  const control::SocketFile socket_file(options.socket);
  BrokerServer server(io, std::move(startup),
                      {.acceptor = std::move(acceptor),
                       .fd_store = fd_store,
                       .clock = clock,
                       .agent = agent.get(),
                       .device_memory = device_memory ? &*device_memory : nullptr,
                       .spill = std::move(spill),
                       .reload = std::move(reload),
                       .event_file = std::move(event_file)},
                      options);
  TRY(server.start(io, std::move(kept)));
  spdlog::info(
      "broker serves socket={} capacity_bytes={} swap_capacity_bytes={} spill_capacity_bytes={} "
      "weights_capacity_bytes={} slots={}",
      options.socket, options.capacity_bytes, options.swap_capacity_bytes,
      options.spill_capacity_bytes, options.weights_capacity_bytes, options.slots);
  io.run();
  fd_store.remove_all();
  // The service manager listens on its socket on behalf of the next broker.
  if (!is_activated && !socket_file.remove()) {
    spdlog::warn("left the socket file in place because it was replaced socket={}", options.socket);
  }
  spdlog::info("broker stopped socket={}", options.socket);
  return {};
}

}  // namespace leasehold
