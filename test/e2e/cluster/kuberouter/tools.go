//go:build tools

// Package kuberouter pins kube-router, a command, so nothing here is compiled. The release is the newest that is to be had as a Go module everywhere.
package kuberouter

import _ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
