package plan

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"david/internal/mycnf"
)

// TestEveryArchitectureHasItsCommands: what is planned, wherever and of whichever flavour, is told how it is made: with what its
// architecture cannot be without, in the syntax of the flavour, with as many hosts as are billed, and with the copies in other
// regions where there are some.
func TestEveryArchitectureHasItsCommands(t *testing.T) {
	t.Parallel()
	c := catalogue(t)
	requests := everywhere()
	for _, r := range everywhere()[:2] {
		r.Flavour = mycnf.MariaDB
		requests = append(requests, r)
	}
	seen := map[string]int{}
	for _, r := range requests {
		p, err := New(c, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range p.Choices {
			if !x.Priced || p.Asked.Flavour == mycnf.MariaDB && strings.Contains(strings.Join(failed(x), " "), "flavour") {
				continue
			}
			text := strings.Join(x.Commands, "\n")
			typed := 0
			for _, line := range x.Commands {
				if !strings.HasPrefix(line, "#") {
					typed++
				}
				if strings.Contains(line, "\n") || strings.Contains(line, "%!") {
					t.Errorf("%s: %q", x.Name(), line)
				}
			}
			if typed == 0 {
				t.Errorf("%s: nothing to type: %q", x.Name(), x.Commands)
			}
			if r.Kubernetes && strings.Contains(text, "kubectl apply") {
				continue
			}
			seen[string(x.Kind)]++
			for _, want := range needed(x, p.Asked.Flavour) {
				if !regexp.MustCompile(want).MatchString(text) {
					t.Errorf("%s, %s: no %s in\n%s", x.Name(), p.Asked.Flavour, want, text)
				}
			}
		}
	}
	for _, a := range Architectures() {
		if seen[string(a.Kind)] == 0 {
			t.Errorf("no commands of %s were seen", a.Kind)
		}
	}
}

// TestSemisyncReplicasDoNotWait: the source's half of semi-synchronous replication is for the primary alone. With it and a timeout
// without end a replica waited for ever for an acknowledgement of the first transaction that it applied.
func TestSemisyncReplicasDoNotWait(t *testing.T) {
	for _, flavour := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		for _, line := range (Request{Flavour: flavour}).semisync(Choice{Kind: Semisync}) {
			on := strings.Contains(line, "source_enabled=ON") || strings.Contains(line, "master_enabled=ON")
			if on && !strings.HasPrefix(line, "# on the primary alone: ") && !strings.HasPrefix(line, "# who promotes ") {
				t.Errorf("%s: %s", flavour, line)
			}
		}
	}
}

// needed lists what an architecture's commands cannot be without.
func needed(x Choice, f mycnf.Flavour) (list []string) {
	maria := f == mycnf.MariaDB
	pick := func(of, or string) string {
		if maria {
			return of
		}
		return or
	}
	follow := pick(`MASTER_USE_GTID=slave_pos; START REPLICA`, `SOURCE_AUTO_POSITION=1; START REPLICA`)
	switch x.Kind {
	case Local:
		list = append(list, `mdadm --create .* --level=10`)
	case Single:
		list = append(list, map[string]string{"EC2": `aws ec2 attach-volume`, "Google": `gcloud compute instances attach-disk`, "Azure": `az vm disk attach`}[x.Provider], `david tune`)
	case Async:
		list = append(list, follow)
	case Semisync:
		list = append(list, follow, pick(`rpl_semi_sync_master_wait_point=AFTER_SYNC`, `rpl_semi_sync_source_wait_point=AFTER_SYNC`), `timeout=4294967295`, pick(`primary alone: rpl_semi_sync_master_enabled=ON`, `primary alone: rpl_semi_sync_source_enabled=ON`))
	case Group:
		list = append(list, `dba create-cluster`, fmt.Sprintf(`addInstance\('USER@HOST%d'`, x.Copies), `group_replication_bootstrap_group=ON`, fmt.Sprintf(`HOST%d:33061,`, x.Copies))
		if x.Followers > 0 {
			list = append(list, fmt.Sprintf(`addReplicaInstance\('USER@REGION%d'`, x.Followers+1))
		}
	case Galera:
		list = append(list, fmt.Sprintf(`gcomm://HOST1,HOST2.*HOST%d,`, x.Copies), pick(`galera_new_cluster`, `mysql@bootstrap`), `wsrep_cluster_size`)
		if x.Followers > 0 {
			list = append(list, `REGION2.*`+follow)
		}
	case DRBD:
		list = append(list, `protocol C`, `quorum majority`, `disk none`, `stonith-enabled=true`, `ocf:linbit:drbd`)
	case NDB:
		list = append(list, `ndb_mgmd `, `ndbmtd `, `NoOfReplicas=2, DataMemory=\d`, `ENGINE=NDB`)
	case Vitess:
		list = append(list, fmt.Sprintf(`GenerateShardRanges %d `, x.Shards), `durability-policy=semi_sync`, `vttablet `, `vtgate `, `ApplyVSchema`)
		if x.Followers > 0 {
			list = append(list, `REGION2`)
		}
	case Managed, ManagedHA:
		order := map[string]string{"RDS": `aws rds create-db-instance .* --allocated-storage \d+ .*--no-multi-az`, "CloudSQL": `gcloud sql instances create .*=ZONAL`, "AzureMySQL": `az mysql flexible-server create .* Disabled`}[x.Provider]
		if x.Kind == ManagedHA {
			order = strings.NewReplacer("--no-multi-az", " --multi-az", "ZONAL", "REGIONAL", "Disabled", "ZoneRedundant").Replace(order)
		}
		list = append(list, order)
	}
	if (x.Kind == Async || x.Kind == Semisync) && x.Followers > 0 {
		list = append(list, fmt.Sprintf(`each of %d, of them %d in other regions`, x.Copies-1+x.Followers, x.Followers))
	}
	if x.Manager && x.Kind != Vitess {
		list = append(list, `orchestrator-client -c discover`)
	}
	return list
}
