package operator

import (
	"testing"

	"david/internal/manifest/render"
	"david/internal/mycnf"
)

// request asks for a flavour, with what it needs and some lines of a tune.
func request(f render.Flavor) render.Request {
	req := render.Request{Name: "orders", Namespace: "databases", Flavor: f, Server: Server(f), Version: mycnf.Version{Major: 8, Minor: 4, Patch: 6},
		CPUs: 4, Memory: 16 << 30, Size: 50 << 30, Storage: "class:fast", Expose: render.ClusterIP, Image: "example/mysql:8.4.6",
		Measured: render.Measured{CPUs: 2, Memory: 8 << 30, Threads: 16, Tables: 10, WriteIOPS: 4800}}
	req.HA, req.Replicas = Defaults(f, "")
	if f == render.MariaDBOperator {
		req.Version = mycnf.Version{Major: 11, Minor: 8}
		return req
	}
	req.Settings = []mycnf.Setting{
		{Name: "innodb_buffer_pool_size", Value: "6G", Group: "memory", Reason: "what the search found best"},
		{Name: "innodb_adaptive_hash_index", Value: "OFF", Group: "concurrency", Reason: "what the search found best"},
		{Name: "innodb_flush_method", Value: "O_DIRECT", Group: "flush", Reason: "pages are cached once"},
	}
	return req
}

// TestOperatorsKeepTheConfiguration looks for what an operator would undo in what it is given.
func TestOperatorsKeepTheConfiguration(t *testing.T) {
	lines := func(f render.Flavor, own ...mycnf.Setting) map[string]string {
		req := request(f)
		req.Settings = append(req.Settings, own...)
		d, err := managers()[f].deployment(req)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		m := map[string]string{}
		for _, s := range d.settings {
			m[s.Name] = s.Value
			if s.Reason == "" && s.Name != own[0].Name {
				t.Errorf("%s: %s has no reason", f, s.Name)
			}
		}
		for _, name := range []string{"server_id", "gtid_mode", "log_bin"} {
			if _, there := m[name]; there {
				t.Errorf("%s: %s is the operator's", f, name)
			}
		}
		return m
	}
	tunedLine := mycnf.Setting{Name: "performance_schema", Value: "OFF", Group: "logging"}
	for f := range managers() {
		got := lines(f, tunedLine, mycnf.Setting{Name: "server_id", Value: "7"}, mycnf.Setting{Name: "gtid_mode", Value: "OFF"}, mycnf.Setting{Name: "log_bin", Value: "OFF"})
		for name, want := range map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "max_connections": "151"} {
			if got[name] != want {
				t.Errorf("%s: %s=%q, want %s", f, name, got[name], want)
			}
		}
		if got["innodb_buffer_pool_size"] == "" {
			t.Errorf("%s: the operator would size the pool", f)
		}
		want := map[render.Flavor]string{render.PerconaPXC: "OFF", render.KubeBlocks: "OFF", render.MariaDBOperator: "OFF", render.PerconaPS: "ON", render.Oracle: "ON", render.Moco: "ON"}[f]
		if got["performance_schema"] != want {
			t.Errorf("%s: performance_schema=%s, want %s", f, got["performance_schema"], want)
		}
	}
	if got := lines(render.Moco, tunedLine); got["table_open_cache"] != "4000" || got["innodb_adaptive_hash_index"] != "OFF" || got["binlog_transaction_compression"] != "OFF" {
		t.Errorf("moco's own defaults stay: %v", got)
	}
	if got := lines(render.Moco, mycnf.Setting{Name: "table_open_cache", Value: "9000"}); got["table_open_cache"] != "9000" {
		t.Errorf("the tune's own line does not win: %v", got["table_open_cache"])
	}
	if got := lines(render.KubeBlocks, mycnf.Setting{Name: "innodb_page_size", Value: "16K"}); got["innodb_page_size"] != "" || got["general_log"] != "OFF" || got["slave_exec_mode"] != "STRICT" {
		t.Errorf("render.KubeBlocks: %v", got)
	}
}
