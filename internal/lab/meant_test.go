package lab

import (
	"testing"

	"david/internal/mycnf"
	"david/internal/server"
)

// TestMeant: a file is for the server that is installed, as far as nobody says otherwise.
func TestMeant(t *testing.T) {
	maria := server.Binary{Flavour: mycnf.MariaDB, Version: "10.11.19-MariaDB-0+deb12u1"}
	old := server.Binary{Flavour: mycnf.MySQL, Version: "5.7.44"}
	my := server.Binary{Flavour: mycnf.MySQL, Version: "9.7.4-2"}
	for name, c := range map[string]struct {
		said Named
		all  []server.Binary
		want Meant
	}{
		"one server":             {Named{}, []server.Binary{maria}, Meant{Named{mycnf.MariaDB, "10.11.19"}, "installed here"}},
		"two":                    {Named{}, []server.Binary{my, maria}, Meant{Named{mycnf.MySQL, "9.7.4"}, "installed here"}},
		"one that is too old":    {Named{}, []server.Binary{old, maria}, Meant{Named{mycnf.MariaDB, "10.11.19"}, "installed here"}},
		"only one that is":       {Named{}, []server.Binary{old}, Meant{Named{mycnf.MySQL, "5.7.44"}, "installed here"}},
		"none":                   {Named{}, nil, Meant{Named{mycnf.MySQL, "9.7"}, "assumed: no server is installed here"}},
		"the other flavour":      {Named{Flavour: mycnf.MariaDB}, []server.Binary{my, maria}, Meant{Named{mycnf.MariaDB, "10.11.19"}, "installed here"}},
		"a flavour that is not":  {Named{Flavour: mycnf.MariaDB}, []server.Binary{my}, Meant{Named{mycnf.MariaDB, "10.11"}, "assumed: none is installed here"}},
		"a version alone":        {Named{Version: "8.0"}, []server.Binary{maria}, Meant{Named{mycnf.MySQL, "8.0"}, "taken for MySQL by the version"}},
		"a version of MariaDB's": {Named{Version: "11.4.5"}, []server.Binary{my}, Meant{Named{mycnf.MariaDB, "11.4.5"}, "taken for MariaDB by the version"}},
	} {
		if got := c.said.among(c.all); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	l := Lab{Home: t.TempDir()}
	if said := (Named{mycnf.Percona, "8.0"}); l.Meant(t.Context(), said, "auto") != (Meant{Named: said}) {
		t.Error("what was said is not taken")
	}
	if b, err := server.Find(t.Context(), l.Home, "auto"); err == nil {
		if got := l.Meant(t.Context(), Named{}, "auto"); got.Flavour != b.Flavour || got.Version != release(b.Version) {
			t.Errorf("%+v, and whoever measures takes %s %s", got, b.Flavour, b.Version)
		}
		if got := l.Meant(t.Context(), Named{}, "mariadb"); got.Flavour != mycnf.MariaDB {
			t.Errorf("the server of the config file: %+v", got)
		}
	}
}
