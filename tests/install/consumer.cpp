/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * A C++ program that uses the installed package.
 */
#include <nfmeta/nfmeta.h>

#include <iostream>
#include <string>

int main()
{
	std::cout << NFMETA_VERSION_STRING << '\n';
	if (std::string(nfmeta_version()) != NFMETA_VERSION_STRING) {
		std::cerr << "headers of " << NFMETA_VERSION_STRING << ", library of "
			  << nfmeta_version() << '\n';
		return 1;
	}
	return 0;
}
