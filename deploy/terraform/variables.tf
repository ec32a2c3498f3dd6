variable "fleet" {
  description = "The fleet's name: it is the value of the tag sojourn:fleet on everything that is made, and part of names."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{0,39}$", var.fleet))
    error_message = "A fleet's name is 1 to 40 lower-case letters, digits and dashes."
  }
}

variable "subnet_ids" {
  description = "Public subnets of a network that is there. Left empty, the module makes a network of its own."
  type        = list(string)
  default     = []
}

variable "vpc_id" {
  description = "The network of subnet_ids. Wanted where these are given."
  type        = string
  default     = null
}

variable "vpc_cidr" {
  description = "The addresses of the module's own network."
  type        = string
  default     = "10.64.0.0/16"
}

variable "zones" {
  description = "Zones of the module's own network, each with a subnet: the more, the more spot pools there are to buy from."
  type        = number
  default     = 3

  validation {
    condition     = var.zones >= 1 && var.zones <= 6
    error_message = "1 to 6 zones."
  }
}

variable "port" {
  description = "The server's port: the only one that is opened."
  type        = number
  default     = 8642
}

variable "allowed_cidrs" {
  description = "The networks from which people and machines outside reach the server's port. The fleet's machines always do."
  type        = list(string)
  default     = []
}

variable "server" {
  description = <<-TEXT
    The server's machine; null makes none, for a server that runs elsewhere.
    image is an AMI with systemd, cloud-init, curl and openssl (Amazon Linux 2023, Debian, Ubuntu). release_url and
    release_sha256 name the small tarball of `make dist`, programs_url and programs_sha256 the one of the programs that the
    fleet's machines fetch from the server.
  TEXT
  type = object({
    image           = string
    instance_type   = optional(string, "t3.small")
    disk_gb         = optional(number, 50)
    release_url     = string
    release_sha256  = string
    programs_url    = string
    programs_sha256 = string
  })
  default = null

  validation {
    condition = var.server == null ? true : alltrue([
      for digest in [var.server.release_sha256, var.server.programs_sha256] : can(regex("^[0-9a-f]{64}$", digest))
    ])
    error_message = "A SHA-256 is 64 hexadecimal digits."
  }
}

variable "tags" {
  description = "Further tags of everything that is made."
  type        = map(string)
  default     = {}
}
