package cli

import (
	"cmp"
	"fmt"
	"slices"

	"david/internal/advice"
	"david/internal/mycnf"
)

// check refuses flags that do not go together.
func (f auditFlags) check() error {
	switch {
	case !f.named() && f.cnf == "":
		return usage("say what to judge: -h, -S, --dsn, --login-path or --defaults-file for a running server, --cnf for an option file")
	case f.named() && f.cnf != "":
		return usage("--cnf is for a file: leave out what names a server (-h, -P, -S, --dsn, --login-path, --defaults-file)")
	case f.cnf != "" && f.statement != statementDeadline:
		return usage("--%s is for a running server: leave it out with --cnf", deadlineFlag)
	case f.cnf == "" && f.flavour+f.version != "":
		return usage("--flavour and --server-version are for --cnf: a running server says what it is")
	case !slices.Contains([]string{"", string(mycnf.MySQL), string(mycnf.Percona), string(mycnf.MariaDB)}, f.flavour):
		return usage("--flavour %s: want mysql, percona or mariadb", f.flavour)
	case f.fail != "" && advice.Severity(f.fail).Rank() == len(advice.Severities()):
		return usage("--fail-on %s: want danger, down, slow, conflict or note", f.fail)
	}
	return nil
}

// given puts what the flags say of the hardware in the place of what was seen.
func (f auditFlags) given(in *advice.Facts) error {
	if f.memory != "" {
		n, err := mycnf.ParseSize(f.memory)
		if err != nil || n == 0 {
			return usage("--memory %s: give a size above 0, as 16G", f.memory)
		}
		in.Machine.Memory, in.Machine.RAM = n, 0
	}
	if f.dataSize != "" {
		n, err := mycnf.ParseSize(f.dataSize)
		if err != nil {
			return usage("--data-size: %w", err)
		}
		in.Machine.Data, in.Machine.DataSeen = n, true
	}
	if !in.Machine.DataSeen {
		in.Unseen = append(in.Unseen, "size of the data (--data-size gives it): whether they fit into the buffer pool is not judged")
	}
	in.Machine.CPUs = cmp.Or(f.cpus, in.Machine.CPUs)
	return nil
}

// verdict is the error for --fail-on.
func (f auditFlags) verdict(r advice.Report) error {
	if f.fail == "" {
		return nil
	}
	n := r.Worse(advice.Severity(f.fail))
	if n == 0 {
		return nil
	}
	return codedError{exitInvalid, fmt.Errorf("--fail-on %s: %s that severe or worse", f.fail, pluralise(n, "finding"))}
}
