package report

import (
	"bytes"
	"strings"
	"testing"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
)

// kept is what a server reads back where nothing of its durability was given up.
func kept(more ...string) map[string]string {
	vars := map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "log_bin": "ON", "binlog_checksum": "CRC32", "innodb_doublewrite": "ON",
		"innodb_force_recovery": "0", "innodb_flush_method": "O_DIRECT", "innodb_checksum_algorithm": "crc32"}
	for i := 0; i < len(more); i += 2 {
		vars[more[i]] = more[i+1]
	}
	return vars
}

// enginesFixture is a comparison of MySQL with a MariaDB that is faster.
func enginesFixture(theirs map[string]string) Data {
	d := compareFixture()
	d.Experiment.Server = result.Server{Flavour: mycnf.MySQL, Version: "9.7.4-2", SHA256: "aa"}
	for i := range d.Arms {
		a := &d.Arms[i]
		a.Settings = []mycnf.Setting{{Name: "sync_binlog", Value: "1", Reason: "the durability lock"}}
		a.Effective = kept("log_replica_updates", "ON")
		if i == 2 {
			a.Server, a.Effective = result.Server{Flavour: mycnf.MariaDB, Version: "10.11.19-MariaDB-0+deb12u1"}, theirs
		}
	}
	d.Arms = []result.Arm{d.Arms[0], d.Arms[2]}
	return d
}

func TestEnginesHeadline(t *testing.T) {
	d := enginesFixture(kept("log_slave_updates", "ON"))
	says := func(d Data, wants ...string) {
		t.Helper()
		got := enginesHeadline(d, comparisons(d))
		for _, want := range wants {
			if !strings.Contains(got.String(), want) {
				t.Errorf("%q lacks %q", got, want)
			}
		}
	}
	says(d, "MariaDB 10.11.19: 1.5", "x MySQL 9.7.4's throughput (95 % interval ", "5 blocks), faster; equal durability, as read back; defaults against defaults")
	if h := Build(d).Headline; h.Tone != "gain" || !strings.HasPrefix(h.Big, "MariaDB 10.11.19: ") {
		t.Errorf("%+v", h)
	}
	if got := restsUpon(d); !strings.HasPrefix(got, "MySQL 9.7.4-2, MariaDB 10.11.19-MariaDB-0+deb12u1 (") {
		t.Error(got)
	}
	d.Arms[0].Baseline, d.Arms[1].Baseline = "david-rules", "david-rules"
	says(d, "; david-rules against david-rules")
	d.Arms[1].Baseline = ""
	says(d, "; control with david-rules, memory with defaults")
	d.Arms[1].Settings = append(d.Arms[1].Settings, mycnf.Setting{Name: "innodb_log_file_size", Value: "2G"})
	says(d, "memory with settings of its own")
	says(enginesFixture(kept("log_slave_updates", "OFF")), "NOT at equal durability, as read back: log_slave_updates is ON with control and OFF with memory")
	d = enginesFixture(kept("sync_binlog", "0"))
	d.Arms[0].Effective["sync_binlog"] = "0"
	says(d, "equally unsafe, as read back: sync_binlog is 0")
	d = enginesFixture(kept())
	d.Arms[0].Effective["innodb_doublewrite_files"] = "2"
	d.Experiment.Host.Data.Disk, d.Experiment.Host.Disks = "sda", []host.Disk{{Name: "sda", WriteCache: "write back"}}
	says(d, "equal durability, as read back, but for one flush: with O_DIRECT MySQL")
	d.Experiment.Host.Disks[0].WriteCache = "write through"
	says(d, "equal durability, as read back; ")
	d.Arms[1].Effective = nil
	if got := enginesHeadline(d, comparisons(d)).String(); strings.Contains(got, "durability") {
		t.Errorf("nothing was read back of the one server: %q", got)
	}
	d = enginesFixture(kept())
	again := d.Arms[0]
	again.Name = "again"
	d.Arms = append(d.Arms, again)
	says(d, "x control (MySQL 9.7.4)'s throughput")
}

// TestDurabilityTable: each server's names and values stand side by side, in every form of the report;
// where the servers are one, there is no such table.
func TestDurabilityTable(t *testing.T) {
	d := enginesFixture(kept("log_slave_updates", "ON", "innodb_checksum_algorithm", "full_crc32", "tx_isolation", "REPEATABLE-READ"))
	for _, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return Text(b, d) },
		func(b *bytes.Buffer) error { return Markdown(b, d) },
		func(b *bytes.Buffer) error { return HTML(b, d) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Durability, as read back", "log_replica_updates / log_slave_updates", "full_crc32", "transaction_isolation / tx_isolation"} {
			if !strings.Contains(strings.ReplaceAll(b.String(), "\\_", "_"), want) {
				t.Errorf("no %q in:\n%.3000s", want, b.String())
			}
		}
	}
	var b bytes.Buffer
	if err := Text(&b, compareFixture()); err != nil || strings.Contains(b.String(), "read back from the servers") {
		t.Errorf("%v, %s", err, b.String())
	}
}
