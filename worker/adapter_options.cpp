#include "worker/adapter_options.hpp"

#include "common/cli/command_line.hpp"
#include "common/cli/number_option.hpp"

namespace leasehold {

void add_adapter_options(CLI::App& app, WorkerOptions& options) {
  app.add_option("--adapters", options.adapters_dir,
                 "Directory with the files of adapters (LoRA) that operators register with "
                 "`brokerctl adapters add`; without it requests cannot name any")
      ->check(check_directory_path);
  add_number_option(app, "--max-adapter-rank", options.max_adapter_rank,
                    "Largest rank of an adapter's matrices", 1u, 512u);
}

}  // namespace leasehold
