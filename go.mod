module david

go 1.25.0

require github.com/agnivade/levenshtein v1.2.1
