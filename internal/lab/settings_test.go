package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/rules"
	"david/internal/server"
)

func TestPossible(t *testing.T) {
	const memory = 8 << 30
	for text, want := range map[string]string{
		"innodb_page_size=12345":      "4K, 8K, 16K, 32K or 64K",
		"INNODB-PAGE-SIZE=5k":         "4K, 8K, 16K, 32K or 64K",
		"loose_innodb_page_size=1M":   "4K, 8K, 16K, 32K or 64K",
		"innodb_page_size=x":          "4K, 8K, 16K, 32K or 64K",
		"innodb_page_size=":           "has no value",
		"innodb_page_size=16384":      "",
		"innodb_page_size=64k":        "",
		"innodb_buffer_pool_size=":    "has no value",
		"innodb_buffer_pool_size=40G": "is more than",
		"innodb_buffer_pool_size=8G":  "",
		"innodb_flush_method=":        "has no value",
		"sql_mode=":                   "",
		"skip_log_bin":                "",
		"innodb_file_per_table=":      "",
	} {
		s, err := mycnf.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		err = Possible(s, memory)
		if (err == nil) != (want == "") || err != nil && (!errors.As(err, &InputError{}) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A variable that only the server knows is given no empty value unless it is a switch.
func TestEmptyValueOfAnUnknownVariable(t *testing.T) {
	known := map[string]string{"made_up_size": "8388608", "made_up_switch": "FALSE", "innodb_file_per_table": "TRUE"}
	b := server.Binary{Flavour: mycnf.MySQL, Version: "9.7.4"}
	for name, ok := range map[string]bool{"made_up_size": false, "made_up_switch": true, "innodb_file_per_table": true} {
		if err := knownTo(b, mycnf.Version{Major: 9, Minor: 7}, known, mycnf.Setting{Name: name}); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStrip: what this build lacks is left out, and told.
func TestStrip(t *testing.T) {
	set := []mycnf.Setting{{Name: "innodb_numa_interleave", Value: "ON"}, {Name: "max_connections", Value: "5"}, {Name: "skip_log_bin"}}
	b := rules.Baseline{Shipped: slices.Clone(set), Settings: slices.Clone(set)}
	strip(server.Binary{Flavour: mycnf.MySQL, Version: "9.7.4"}, mycnf.Version{Major: 9, Minor: 7, Patch: 4}, map[string]string{"max_connections": "151", "log_bin": ""}, &b)
	if len(b.Settings) != 2 || len(b.Shipped) != 2 || len(b.Translated) != 1 || !strings.HasPrefix(b.Translated[0], "innodb_numa_interleave=ON is left out") {
		t.Errorf("%+v", b)
	}
}
