package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"david/internal/mycnf"
	"david/internal/server"
	"david/internal/testserver"
)

// TestValidate holds what a server says of its settings without data.
func TestValidate(t *testing.T) {
	for _, flavour := range flavours {
		t.Run(flavour, func(t *testing.T) {
			b := testserver.Find(t, flavour)
			w := open(t, newHome(t), Options{NoVolume: true})
			good := []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "256M"}, {Name: "max_connections", Value: "50"}, {Name: "skip_log_bin"}}
			if err := w.Validate(context.Background(), b, good); err != nil {
				t.Error(err)
			}
			for _, bad := range []mycnf.Setting{{Name: "no_such_variable", Value: "3"}, {Name: "innodb_flush_method", Value: "teleport"}, {Name: "innodb_buffer_pool_size", Value: "abc"}} {
				err := w.Validate(context.Background(), b, append(good, bad))
				var refused *StartError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), bad.Value) && !strings.Contains(err.Error(), bad.Name) {
					t.Errorf("%s=%s: %v", bad.Name, bad.Value, err)
				}
			}
		})
	}
}

// TestReadData reads a server's own plain files, by their bare names, and nothing else.
func TestReadData(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	in := func(name string) string { return filepath.Join(data, name) }
	if err := errors.Join(os.Mkdir(data, 0o700), os.Mkdir(in("sub"), 0o700), os.WriteFile(in("binlog.1"), []byte("four"), 0o600), os.WriteFile(in("sub/file"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600), os.Symlink("../precious", in("link")), syscall.Mkfifo(in("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := &Server{w: &Workspace{}, data: data}
	s.w.owner.UID = os.Geteuid()
	for name, says := range map[string]string{
		"binlog.1": "", "../precious": "no name", "sub/file": "no name", "/dev/zero": "no name", "../../../../../../dev/zero": "no name", "": "no name", ".": "no name", "..": "no name",
		"link": "too many levels", "pipe": "no plain file", "sub": "no plain file", "none": "no such file",
	} {
		b, err := s.ReadData(name, 4)
		if says == "" && (err != nil || string(b) != "four") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %q, %v, want %q", name, b, err, says)
		}
	}
	if _, err := s.ReadData("binlog.1", 3); err == nil || !strings.Contains(err.Error(), "longer than 3 bytes") {
		t.Errorf("a longer one: %v", err)
	}
	s.w.owner.UID++
	if _, err := s.ReadData("binlog.1", 4); err == nil || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("another's: %v", err)
	}
}

// TestValidateReadsNoLink: a server that puts a link in the place of what it printed has nothing else read and told.
func TestValidateReadsNoLink(t *testing.T) {
	w := open(t, newHome(t), Options{NoVolume: true})
	dir := t.TempDir()
	precious, program := filepath.Join(dir, "precious"), filepath.Join(dir, "usr/sbin/mysqld")
	script := "#!/bin/sh\nrm out && ln -s '" + precious + "' out\n"
	if err := errors.Join(os.WriteFile(precious, []byte("[ERROR] secret\n"), 0o600), os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	err := w.Validate(t.Context(), server.Binary{Path: program, Root: dir, Launch: []string{program}, Flavour: mycnf.MySQL}, nil)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "too many levels of symbolic links") {
		t.Errorf("%v", err)
	}
}

// TestMariaDBScripts: a server's own scripts are plain files of a bounded size.
func TestMariaDBScripts(t *testing.T) {
	dir := t.TempDir()
	share := filepath.Join(dir, "share")
	if err := errors.Join(os.Mkdir(share, 0o755), os.WriteFile(filepath.Join(share, "mysql_good.sql"), []byte("SELECT 1;"), 0o600), syscall.Mkfifo(filepath.Join(share, "mysql_pipe.sql"), 0o600),
		os.WriteFile(filepath.Join(share, "mysql_long.sql"), nil, 0o600), os.Truncate(filepath.Join(share, "mysql_long.sql"), 1<<40)); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"good": "", "pipe": "is no regular file but a pipe", "long": "is longer than", "none": "is this MariaDB installed completely?"} {
		if _, err := mariadbScript(server.Binary{Basedir: dir}, name); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}
