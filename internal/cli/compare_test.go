package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"david/internal/lab"
	"david/internal/result"
)

func TestSLOBelowAMillisecond(t *testing.T) {
	goal, err := parseSLO("p99=100ns")
	if err != nil || goal.Ms != 0.0001 {
		t.Errorf("%v, %v", goal, err)
	}
}

func TestParseArm(t *testing.T) {
	cnf := filepath.Join(t.TempDir(), "a,b.cnf")
	if err := os.WriteFile(cnf, []byte("[mysqld]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "my.cnf")
	if err := os.WriteFile(plain, []byte("[mysqld]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]lab.Arm{
		"control":                               {Name: "control"},
		"tuned=" + cnf:                          {Name: "tuned", Cnf: cnf},
		"tuned=david-rules":                     {Name: "tuned", Baseline: "david-rules"},
		"x=sql_mode=A,B,autocommit=1":           {Name: "x", Sets: []string{"sql_mode=A,B", "autocommit=1"}},
		"x=server=mysql:9.7,moco,sync_binlog=1": {Name: "x", Server: "mysql:9.7", Baseline: "moco", Sets: []string{"sync_binlog=1"}},
		"mysql":                                 {Name: "mysql", Server: "mysql:newest"},
		"mysql:9.7":                             {Name: "mysql-9.7", Server: "mysql:9.7"},
		"mariadb:10.11,david-rules":             {Name: "mariadb-10.11-david-rules", Server: "mariadb:10.11", Baseline: "david-rules"},
		"percona,a=1,b":                         {Name: "percona", Server: "percona:newest", Sets: []string{"a=1,b"}},
		"half=cpus=0.5":                         {Name: "half", Title: "0.5 CPUs", Caps: result.Caps{CPUs: 0.5}},
		"x=" + plain + ",iops=5800,memory=4G": {
			Name: "x", Title: "the settings of " + plain + ", 4 GiB, 5800 IOPS", Cnf: plain,
			Caps: result.Caps{IOPS: 5800, Memory: 4 << 30},
		},
		"x=moco,sync_binlog=1,bandwidth=125M": {
			Name: "x", Title: "moco, sync_binlog=1, 125 MiB/s", Baseline: "moco", Sets: []string{"sync_binlog=1"},
			Caps: result.Caps{Bandwidth: 125 << 20},
		},
		"mysql=innodb_use_fdatasync=ON": {Name: "mysql", Sets: []string{"innodb_use_fdatasync=ON"}},
	} {
		got, engine, err := parseArm(text)
		if _, named, _ := parseArm("mysql:9.7"); err != nil || !named || !reflect.DeepEqual(got, want) || engine != (want.Server != "" && text[:2] != "x=") {
			t.Errorf("%s: %+v, %t, %v; want %+v", text, got, engine, err, want)
		}
	}
	for _, text := range []string{
		"", ":", "mysql:", "mysql:nine", "oracle:9", "../x", // no name, no server
		"x=./gone.cnf", "mysql,gone.cnf", "mysql,moco,rds-8.0", // no file, two baselines
		"mysql:9.7=x", "mysql,server=mariadb", // two servers
		"x=cpus=0", "x=iops=some", "x=memory=1", // no caps
	} {
		if got, _, err := parseArm(text); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%q was read as %+v, %v", text, got, err)
		}
	}
}
