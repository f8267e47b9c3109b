/// The examples in the help of each command.
#pragma once

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Sets the footer of each command of `app`. Call it once all commands are added.
void add_examples(CLI::App& app);

}  // namespace leasehold::brokerctl
