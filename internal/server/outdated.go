package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Older is a program that david installed, and of which it has a newer version.
type Older struct {
	Name      string // of its folder, as Remove takes it
	Newer     string // the newest of the same product
	Dir       string
	Installed time.Time
}

// Outdated lists the programs in david's folder of which it has a newer version, in the order of their names.
func Outdated(home string) (list []Older) {
	servers := serversDir(home)
	newest := map[string]string{} // by product
	names := installed(servers)
	for _, name := range names {
		if other, ok := newest[productOf(name)]; !ok || slices.Compare(versionNumbers(name), versionNumbers(other)) > 0 {
			newest[productOf(name)] = name
		}
	}
	for _, name := range names {
		dir, product := filepath.Join(servers, name), productOf(name)
		info, err := os.Lstat(dir)
		if product == "" || newest[product] == name || err != nil {
			continue
		}
		list = append(list, Older{Name: name, Newer: newest[product], Dir: dir, Installed: info.ModTime()})
	}
	return list
}

// productOf returns the product that a folder's name begins with; "" for what david did not install.
func productOf(name string) string {
	for product, p := range products() {
		if strings.HasPrefix(name, p.prefix) {
			return product
		}
	}
	return ""
}
