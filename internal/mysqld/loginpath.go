package mysqld

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"david/internal/input"
	"david/internal/mycnf"
)

// longestLogin bounds a login file, in bytes.
const longestLogin = 64 << 10

// ReadLoginPath returns what ~/.mylogin.cnf has under [client] and under a login path, which goes before it. The file
// is made hard to read, not secret: its key stands in it (mysys_ssl/my_default.cc of MySQL 8.4: four bytes, a key of 20
// that is folded to 16, then lines, each its length and AES-128 in ECB mode).
func ReadLoginPath(path, name string) (map[string]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot use the login path %s: there is no %s; mysql_config_editor makes it", name, path)
	}
	if err == nil && (info.Mode().Perm()&0o077 != 0 || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid()) {
		err = errors.New("others could read or change it: chmod 600 it, as mysql's clients ask for, too")
	}
	var b, text []byte
	if err == nil {
		b, err = input.Read(path, longestLogin)
	}
	if err == nil {
		text, err = readable(b)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	file, err := mycnf.Parse(bytes.NewReader(text), path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: what is in it is no option file", path) // the line may hold a password
	}
	if len(file.ClientOptions(name)) == 0 {
		return nil, fmt.Errorf("cannot use the login path %s: %s has none of that name; mysql_config_editor print --all names them", name, path)
	}
	return file.ClientOptions("client", name), nil
}

var errLogin = errors.New("it is no file of mysql_config_editor's, or it is damaged")

// readable is the text of a login file.
func readable(b []byte) (text []byte, err error) {
	const unused, keyBytes = 4, 20
	if len(b) < unused+keyBytes {
		return nil, errLogin
	}
	key := make([]byte, aes.BlockSize)
	for i, c := range b[unused : unused+keyBytes] {
		key[i%aes.BlockSize] ^= c
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	for b = b[unused+keyBytes:]; len(b) > 0; {
		if len(b) < 4 {
			return nil, errLogin
		}
		n := int(binary.LittleEndian.Uint32(b))
		if n <= 0 || n%aes.BlockSize != 0 || n > len(b)-4 {
			return nil, errLogin
		}
		line := b[4 : 4+n]
		b = b[4+n:]
		for i := 0; i < n; i += aes.BlockSize {
			block.Decrypt(line[i:], line[i:i+aes.BlockSize])
		}
		padding := int(line[n-1])
		if padding < 1 || padding > aes.BlockSize {
			return nil, errLogin
		}
		text = append(text, line[:n-padding]...)
	}
	return text, nil
}
