module david

go 1.25.0

require (
	github.com/agnivade/levenshtein v1.2.1
	github.com/moby/sys/mountinfo v0.7.3
	github.com/prometheus/procfs v0.21.0
	golang.org/x/sys v0.46.0
)
