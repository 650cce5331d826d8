#include "cli/cli.hpp"

int main(int argc, char** argv) {
  return teller::cli::Main(argc, argv);
}
