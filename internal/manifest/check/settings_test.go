package check

import (
	"slices"
	"strings"
	"testing"
)

// TestCheckSettings holds option files and who asks the server against what a server and a kubelet do.
func TestCheckSettings(t *testing.T) {
	const folder, tcp, service = "mountPath: /etc/mysql/conf.d", "livenessProbe: {tcpSocket: {port: 3306}, periodSeconds: 30}", "{port: 3306}"
	for _, test := range []struct {
		cnf, key, mount, container, pod, ports string
		want                                   string // "rule path" of what is found
	}{
		{cnf: "[mysqld]\ninnodb_buffer_pool_size=4GB\nserver_id=${ID}\nskip-external-locking\ninnodb_stats_persistent_sample_pages=40"},
		{cnf: "[mysqld]\ninnodb_buffer_pol_size=4G", want: `my-cnf data["my.cnf"]`},
		{cnf: "[mysqld]\nloose_innodb_buffer_pol_size=4G"},
		{cnf: "[mysqld]\ninnodb_buffer_pool_size=1.5G", want: `my-cnf data["my.cnf"]`},
		{cnf: "[mysqld]\nmax_connections=many", want: `my-cnf data["my.cnf"]`},
		{cnf: "[mysql]\ninnodb_buffer_pool_size=1G", want: `my-cnf data["my.cnf"]`},
		{cnf: "[client]\nmax_connections=100\nport=3306", want: `my-cnf data["my.cnf"]`},
		{cnf: "[client]\nport=3307\nsocket=/s\nmax_allowed_packet=64M\ndefault-character-set=utf8mb4\nloose-local-infile=1"},
		{cnf: "[mysqld]\nport=3306", key: "my.conf", want: `my-cnf data["my.conf"]`},
		{cnf: "[mysqld]\nport=3306", key: "my.ini", want: `my-cnf data["my.ini"]`},
		{cnf: "SELECT 1;", key: "init.sql"},
		{cnf: "[mysqld]\nport=3306", key: "my.conf", container: "args: [--defaults-extra-file=/etc/mysql/conf.d/my.conf]"},
		{cnf: "[mysqld]\nport=3306", key: "config", mount: "mountPath: /etc/mysql/conf.d/my.cnf, subPath: config"},
		{cnf: "[mysqld]\nmax_connections=many", key: "config", mount: "mountPath: /etc/mysql/conf.d/my.cnf, subPath: config", want: "my-cnf data.config"},
		{cnf: "[mysqld]\nmax_connections=many", key: "my.cnf", mount: "mountPath: /etc/mysql/conf.d/my.cnf, subPath: other"},
		{cnf: "[mysqld]\nskip-networking", want: `network data["my.cnf"]`},
		{cnf: "[mysqld]\nskip-networking", container: tcp, ports: "{port: 33060}", want: `network data["my.cnf"]`},
		{cnf: "[mysqld]\nskip-networking=OFF", container: tcp},
		{cnf: "[mysqld]", container: "command: [sh, -c, 'mysqld --skip-networking & set-up; exec mysqld']"},
		{cnf: "[mysqld]", container: "command: [sh, -c, 'mysqld --skip-networking & set-up; exec /entry']"},
		{cnf: "[mysqld]", container: "command: [sh, -c, 'exec mysqld --skip-networking']", want: "network spec.template.spec.containers[0].command"},
		{cnf: "[mysqld]\nbind-address=127.0.0.1", want: `network data["my.cnf"]`},
		{cnf: "[mysqld]\nbind-address=127.0.0.1", ports: "{port: 33060}"},
		{cnf: "[mysqld]\nbind-address=127.0.0.1", pod: "initContainers: [{name: a, image: b}]", ports: "{port: 33060}"},
		{cnf: "[mysqld]\nbind-address=0.0.0.0", container: tcp},
		{cnf: "[mysqld]\nbind-address=127.0.0.1", container: "args: ['--bind-address=*']"},
		{cnf: "[mysqld]\nport=3307", want: "network spec.ports[0]"},
		{cnf: "[mysqld]\nport=3307", ports: "{port: 3306, targetPort: 3307}"},
		{cnf: "[mysqld]\nport=3307", ports: "{port: 3306, targetPort: mysql}", container: "ports: [{name: mysql, containerPort: 3307}]"},
		{cnf: "[mysqld]\nport=3307", ports: "{port: 3307}", container: tcp, want: "network spec.template.spec.containers[0].livenessProbe.tcpSocket.port"},
		{cnf: "[mysqld]\nport=3307", ports: "{port: 3307}", container: "livenessProbe: {exec: {command: [mysqladmin, -h, 127.0.0.1, ping]}}", want: "network spec.template.spec.containers[0].livenessProbe.exec.command"},
		{cnf: "[mysqld]", container: "livenessProbe: {exec: {command: [sh, -c, 'exec mysqladmin -h127.0.0.1 -P 3307 ping']}}", want: "network spec.template.spec.containers[0].livenessProbe.exec.command"},
		{cnf: "[mysqld]\nport=3307", ports: "{port: 3307}", container: "livenessProbe: {exec: {command: [mysqladmin, --protocol=tcp, --port=3307, ping]}}"},
		{cnf: "[mysqld]\nport=3307", ports: "{port: 3307}", container: "livenessProbe: {exec: {command: [sh, -c, 'mysqladmin -h 127.0.0.1 -P $PORT ping']}}"},
		{cnf: "[mysqld]\nport=3307", ports: "{port: 3307}", container: "livenessProbe: {exec: {command: [mysqladmin, -h, localhost, -P, '3306', ping]}}"},
		{cnf: "[mysqld]\nbind-address=127.0.0.1", ports: "{port: 33060}", container: "livenessProbe: {exec: {command: [mariadb-admin, --host=127.0.0.1, ping]}}"},
		{cnf: "[mysqld]\nskip-networking", ports: "{port: 33060}", container: "livenessProbe: {exec: {command: [mysql, -h, 127.0.0.1, -e, SELECT 1]}, timeoutSeconds: 5}", want: `network data["my.cnf"]`},
		{cnf: "[mysqld]", pod: "terminationGracePeriodSeconds: 0", want: "grace-period spec.template.spec.terminationGracePeriodSeconds"},
		{cnf: "[mysqld]", pod: "terminationGracePeriodSeconds: 30"},
		{cnf: "[mysqld]", pod: "terminationGracePeriodSeconds: 30\n  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Delete}", want: "volumes spec.persistentVolumeClaimRetentionPolicy.whenScaled"},
		{cnf: "[mysqld]", pod: "terminationGracePeriodSeconds: 30\n  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}", want: "volumes spec.persistentVolumeClaimRetentionPolicy.whenDeleted"},
	} {
		or := func(text, otherwise string) string {
			if text == "" {
				return otherwise
			}
			return text
		}
		text := setText(test.cnf, or(test.key, "my.cnf"), or(test.mount, folder), test.container, test.pod, or(test.ports, service))
		var got []string
		for _, f := range inspected(t, text, Known{}).Findings {
			if slices.Contains([]string{"my-cnf", "network", "grace-period", "volumes", "schema", "syntax"}, f.Rule) {
				got = append(got, f.Rule+" "+f.Path)
			}
			if f.Line == 0 || f.Do == "" {
				t.Errorf("it does not say where, or what to do: %+v", f)
			}
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%+v\nfound %q", test, got)
		}
	}
}

// TestCheckNamesTheSetting: a setting that is wrong is shown on its own line.
func TestCheckNamesTheSetting(t *testing.T) {
	text := setText("[client]\nport=3306\nmax_connections=5\n\n[mysqld]\nmax_connections=many", "my.cnf", "mountPath: /etc/mysql/conf.d", "", "", "{port: 3306}")
	lines := strings.Split(text, "\n")
	var got []string
	for _, f := range inspected(t, text, Known{}).Findings {
		if f.Rule == "my-cnf" {
			got = append(got, strings.TrimSpace(lines[f.Line-1]))
		}
	}
	if want := []string{"max_connections=5", "max_connections=many"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
