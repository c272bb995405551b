package apt

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// Recorded from apt-get --print-uris, addresses changed.
const plan = `'http://mirror.example.org/debian/pool/main/libx/libxcrypt/libcrypt1_4.5.2%2b20251210-1_amd64.deb' libcrypt1_1%3a4.5.2+20251210-1_amd64.deb 100216 SHA256:5eb1b09a8d5a0fe40de49b0672aae558814c04e9203c8aa14b8293da3ec2ba4a
'http://mirror.example.org/debian/pool/main/libt/libtirpc/libtirpc3t64_1.3.7%2bds-1_amd64.deb' libtirpc3t64_1.3.7+ds-1_amd64.deb 82880 SHA256:a6d18d608b5a0fe40de49b0672aae558814c04e9203c8aa14b8293da3ec2ba4a
'http://mirror.example.org/debian/pool/main/m/mysql-9.7/mysql-server-core_9.7.4-2_amd64.deb' mysql-server-core_9.7.4-2_amd64.deb 26124236 SHA256:628d2d7d2dc827507bcae80677a9950766b002bec2c658cb96343d9f324f8660
`

func TestParsePlan(t *testing.T) {
	packages, err := parsePlan(plan)
	if err != nil || len(packages) != 3 {
		t.Fatalf("got %d packages, %v", len(packages), err)
	}
	if p := packages[0]; p.Name != "libcrypt1" || p.Version != "1:4.5.2+20251210-1" || p.Bytes != 100216 || !strings.HasPrefix(p.SHA256, "5eb1b09a") {
		t.Errorf("got %+v", p)
	}
	for _, bad := range []string{
		"Reading package lists...\n",
		"'u' a_1_amd64.deb 5 MD5Sum:12\n",
		"'u' a_1_amd64.deb big SHA256:12\n",
		"'u' ../a_1_amd64.deb 5 SHA256:12\n",
		"'u' a.deb 5 SHA256:12\n",
		"'u' a_%zz_all.deb 5 SHA256:12\n",
	} {
		wantError(t, func() error { _, err := parsePlan(bad); return err }, "cannot understand apt's line")
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add(plan)
	f.Add("'u' a_%zz_all.deb 5 SHA256:12\n")
	f.Fuzz(func(t *testing.T, out string) {
		packages, err := parsePlan(out)
		if err != nil {
			return
		}
		for _, p := range packages {
			if p.Name == "" || strings.ContainsRune(p.File, '/') {
				t.Errorf("%q gave %+v", out, p)
			}
		}
	})
}

func TestComplaint(t *testing.T) {
	for in, want := range map[string]string{
		"W: old list\nE: The repository is not signed.\nE: Some index files failed.\n": "The repository is not signed.",
		"dpkg-deb: error: no such file\n":                                              "dpkg-deb: error: no such file",
		"":                                                                             "",
	} {
		if got := complaint(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestCounter(t *testing.T) {
	var out bytes.Buffer
	c := &counter{out: &out, total: 12}
	for range 12 {
		for _, part := range []string{"Get:1 http://mirror.exa", "mple.org x\nFetched"} {
			if _, err := c.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Write([]byte(" it\n")); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "  10 of 12 packages\n" {
		t.Errorf("got %q", got)
	}
}

// systemApt sets apt up as an installation does, with the system's archive changed.
func systemApt(t *testing.T, change func(*Archive)) State {
	t.Helper()
	from, err := SystemArchive(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	change(&from)
	a, err := New(context.Background(), t.TempDir(), from)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A list that is not signed with the distribution's key is not used, whatever the mirror serves.
func TestWrongSignatureIsRefused(t *testing.T) {
	keyring := t.TempDir() + "/empty.gpg"
	if err := os.WriteFile(keyring, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a := systemApt(t, func(from *Archive) { from.Keyring = keyring })
	wantError(t, func() error { return a.Update(context.Background()) }, "apt-get", "not signed")
	if names, err := a.Names(context.Background(), "mysql-server-core"); err != nil || len(names) > 0 {
		t.Errorf("names %q, %v, out of lists that nobody signed", names, err)
	}
}

func TestUnreachableMirror(t *testing.T) {
	a := systemApt(t, func(from *Archive) { from.URIs = []string{"http://127.0.0.1:9/debian"} })
	config, err := os.ReadFile(a.config)
	if err != nil {
		t.Fatal(err)
	}
	config = append(config, "Acquire::Retries \"0\";\nAcquire::http::Proxy \"DIRECT\";\n"...)
	if err := os.WriteFile(a.config, config, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, func() error { return a.Update(context.Background()) }, "apt-get", "127.0.0.1", "refused")
}

func wantError(t *testing.T, do func() error, parts ...string) {
	t.Helper()
	err := do()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}
