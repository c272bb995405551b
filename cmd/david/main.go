// Command david finds, proves and explains the fastest safe way to run MySQL on the hardware at hand.
package main

import (
	"os"

	"david/internal/cli"
)

// commit and date are stamped by the build: -ldflags "-X main.commit=... -X main.date=...".
var commit, date string

func main() {
	os.Exit(cli.Main(cli.NewBuild(commit, date)))
}
