package apt

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	debian12Sources = `Types: deb
# http://snapshot.example.org/archive/debian/20250520T000000Z
URIs: http://mirror.example.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example.org/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`
	cloudSources = `Types: deb deb-src
URIs: mirror+file:/etc/apt/mirrors/debian.list
Suites: trixie trixie-updates trixie-backports
Components: main

Enabled: no
Types: deb
URIs: http://disabled.example.org/debian
Suites: trixie
Components: main

Types: deb
URIs: https://third.example.org/apt
Suites: trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----
`
	ubuntu22Sources = `# See the manual for how to upgrade to
deb http://archive.example.org/ubuntu/ jammy main restricted
# deb-src http://archive.example.org/ubuntu/ jammy main restricted
deb http://archive.example.org/ubuntu/ jammy-updates main restricted # with a comment
deb-src http://archive.example.org/ubuntu/ jammy universe
deb http://security.example.org/ubuntu jammy-security main
`
	oneLineOptions = `deb [arch=amd64 signed-by=/etc/apt/keyrings/third.gpg] https://third.example.org/apt bookworm main
deb [ arch=amd64,arm64 Signed-By=/usr/share/keyrings/debian-archive-keyring.gpg ] http://mirror.example.org/debian bookworm main contrib
deb cdrom:[Debian GNU/Linux 12 _Bookworm_ - Official]/ bookworm main
deb	http://other.example.org/debian	stable	main
deb http://flat.example.org/apt ./
deb
debug http://no.example.org bookworm main
deb [unclosed http://no.example.org bookworm main
`
	debian12Release = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n"
	debian13Release = "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nVERSION_CODENAME=trixie\nID=debian\n"
	ubuntu22Release = "NAME=\"Ubuntu\"\nVERSION_CODENAME=jammy\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=jammy\n"
	mint22Release   = "NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n"
	fedoraRelease   = "NAME=\"Fedora Linux\"\nID=fedora\nVERSION_ID=42\nVERSION_CODENAME=\"\"\n"
)

func TestArchiveOf(t *testing.T) {
	for _, c := range []struct {
		name, release string
		sources       []source
		suites, uris  string
	}{
		{"Debian 12", debian12Release, parseDeb822(debian12Sources), "sid", "http://mirror.example.org/debian"},
		{"Debian 13 in a cloud", debian13Release, parseDeb822(cloudSources), "sid", "mirror+file:/etc/apt/mirrors/debian.list https://third.example.org/apt"},
		{"options", debian12Release, parseOneLine(oneLineOptions), "sid", "http://mirror.example.org/debian http://other.example.org/debian"},
		{"Ubuntu 22.04", ubuntu22Release, parseOneLine(ubuntu22Sources), "jammy jammy-updates jammy-security",
			"http://archive.example.org/ubuntu/ http://security.example.org/ubuntu"},
		{"another release's sources", debian12Release, parseOneLine(ubuntu22Sources), "sid", ""},
	} {
		d, ok := distributionOf(c.release)
		if !ok {
			t.Fatalf("%s: not recognised", c.name)
		}
		a := archiveOf(d, c.sources)
		if got := strings.Join(a.URIs, " "); got != c.uris {
			t.Errorf("%s: URIs %q, want %q", c.name, got, c.uris)
		}
		if got := strings.Join(a.Suites, " "); got != c.suites {
			t.Errorf("%s: suites %q, want %q", c.name, got, c.suites)
		}
	}
}

func TestDistributionOf(t *testing.T) {
	d, ok := distributionOf(mint22Release)
	if !ok || d.Name != "Ubuntu" || !slices.Contains(d.Suites, "noble-updates") {
		t.Errorf("a derivative of Ubuntu: got %+v, %t", d, ok)
	}
	if d, ok := distributionOf(fedoraRelease); ok {
		t.Errorf("Fedora: got %+v", d)
	}
}

func TestReleaseOf(t *testing.T) {
	for _, c := range []struct {
		name, release, sources, want string
	}{
		{"stable", "bookworm", debian12Sources, "bookworm bookworm-updates: http://mirror.example.org/debian; bookworm-security: http://mirror.example.org/debian-security"},
		{"another release", "trixie", debian12Sources, "trixie trixie-updates: http://mirror.example.org/debian; trixie-security: http://mirror.example.org/debian-security"},
		{"unstable has no updates", "sid", debian12Sources, "sid: http://mirror.example.org/debian"},
		{"no security mirror", "trixie", cloudSources, "trixie trixie-updates: mirror+file:/etc/apt/mirrors/debian.list https://third.example.org/apt"},
	} {
		d, _ := distributionOf(debian12Release)
		sources := parseDeb822(c.sources)
		if c.sources == cloudSources {
			d, _ = distributionOf(debian13Release)
		}
		var got []string
		for _, a := range releaseOf(d, archiveOf(d, sources), c.release, sources) {
			got = append(got, strings.Join(a.Suites, " ")+": "+strings.Join(a.URIs, " "))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A system that cannot do it is told from a failure: its caller may know another way.
func TestNoMirrorIsUnsupported(t *testing.T) {
	d, _ := distributionOf(debian12Release)
	_, err := mainArchive(d, parseOneLine(ubuntu22Sources))
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "apt's sources name no mirror of Debian") {
		t.Errorf("got %v", err)
	}
}

// What is written for apt is read back the same, and never asks apt to trust without a signature.
func TestArchiveRoundTrip(t *testing.T) {
	a := Archive{Suites: []string{"sid"}, URIs: []string{"http://a.example.org/debian", "http://b.example.org/debian"}, Keyring: "/k.gpg"}
	text := a.deb822()
	want := []source{{URIs: a.URIs, Suites: a.Suites, Components: []string{"main"}, SignedBy: "/k.gpg"}}
	if got := parseDeb822(text); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if strings.Contains(strings.ToLower(text+aptConfig), "trusted=yes") {
		t.Error("unsigned packages would be taken")
	}
}

func FuzzSources(f *testing.F) {
	for _, seed := range []string{debian12Sources, cloudSources, ubuntu22Sources, oneLineOptions, "\x00", "deb[", " continued\n:\n"} {
		f.Add(seed)
	}
	d, _ := distributionOf(debian12Release)
	f.Fuzz(func(t *testing.T, text string) {
		a := archiveOf(d, append(parseOneLine(text), parseDeb822(text)...))
		for _, uri := range a.URIs {
			if uri == "" || len(strings.Fields(uri)) != 1 {
				t.Errorf("the URI %q would break the file for apt", uri)
			}
		}
	})
}

func FuzzDistribution(f *testing.F) {
	for _, seed := range []string{debian12Release, ubuntu22Release, mint22Release, fedoraRelease, "ID", "=", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, release string) {
		if d, ok := distributionOf(release); ok && (d.Keyring == "" || len(d.Suites) == 0) {
			t.Errorf("%q gave %+v", release, d)
		}
	})
}
