// Command david finds, proves and explains the fastest safe way to run MySQL on the hardware at hand.
package main

import (
	"os"

	"david/internal/cli"
)

// version is stamped by the build: -ldflags "-X main.version=...".
var version = "dev"

func main() {
	os.Exit(cli.Main(version))
}
