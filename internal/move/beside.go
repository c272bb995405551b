package move

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// dataVariables are those that lead to data without which the folder's are not whole.
func dataVariables() []string {
	return []string{"aria_log_dir_path", "innodb_data_file_path", "innodb_data_home_dir", "innodb_directories", "innodb_doublewrite_dir", "innodb_log_group_home_dir",
		"innodb_undo_directory", "rocksdb_datadir", "rocksdb_wal_dir"}
}

// beside are the data among what lies elsewhere: the old place as it was at the stop does not fit them once the server has
// gone on.
func beside(all []Elsewhere) []Elsewhere {
	return slices.DeleteFunc(slices.Clone(all), func(e Elsewhere) bool {
		return writesBy(e.Name) && !slices.Contains(dataVariables(), e.Name)
	})
}

// logged is the binary log among what lies elsewhere.
func logged(all []Elsewhere) string {
	for _, e := range all {
		if e.Name == "log_bin_basename" {
			return e.Path
		}
	}
	return ""
}

// dataFile is how files that hold data or a log of their changes are called; what else lies in such a folder is no concern. What
// is named itself, by a link or a variable, counts however it is called.
var dataFile = regexp.MustCompile(`(?i)^(ib_logfile|#?ib_redo|ibdata|undo|aria_log)|\.(ibd|ibu|dblwr|frm|myd|myi|mad|mai|mrg|csv|arz|sst)$`)

// besides lists the data files that lie elsewhere, with their modes, owners, sizes and times, a line each. What cannot be seen
// has the error for its line, which is the same again as long as that is so.
func besides(all []Elsewhere) string {
	var text strings.Builder
	for _, e := range all {
		fmt.Fprintf(&text, "%s %s\n", e.Name, e.Path)
		real, err := filepath.EvalSymlinks(e.Path)
		if err == nil {
			err = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
				if err == nil && (!d.Type().IsRegular() || path != real && !dataFile.MatchString(d.Name())) {
					return nil
				}
				var info fs.FileInfo
				if err == nil {
					info, err = d.Info()
				}
				if err != nil {
					fmt.Fprintln(&text, err)
					return nil
				}
				text.WriteString(stats([]file{{name: path, stat: *info.Sys().(*syscall.Stat_t)}}))
				return nil
			})
		}
		if err != nil {
			fmt.Fprintln(&text, err)
		}
	}
	return text.String()
}
